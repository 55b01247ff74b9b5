// A minimal Node server, which answers every request with 200: `node http.mjs PORT`.
import { createServer } from 'node:http'

const server = createServer((_request, response) => {
  response.writeHead(200, { 'content-length': 2 })
  response.end('ok')
})
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}`))
process.once('SIGTERM', () => process.exit(0))
