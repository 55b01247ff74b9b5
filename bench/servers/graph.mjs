// A minimal chatapp platform that accepts replies: `node graph.mjs` answers every message with an id.
import { createServer } from 'node:http'

let sent = 0
const server = createServer((request, response) => {
  request.resume().on('end', () => {
    const body = JSON.stringify({ messaging_product: 'whatsapp', messages: [{ id: `wamid.${++sent}` }] })
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body)
  })
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}`))
process.once('SIGTERM', () => process.exit(0))
