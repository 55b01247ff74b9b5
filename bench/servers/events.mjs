// A minimal Node server that sends an event to many subscribers: `node events.mjs sse` or `node events.mjs ws`.
// `GET /events` subscribes; `POST /publish` sends its body to every subscriber.
import { createServer } from 'node:http'

const [kind] = process.argv.slice(2)
const subscribers = new Set()

const server = createServer((request, response) => {
  if (request.method === 'POST') {
    const chunks = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      broadcast(Buffer.concat(chunks))
      response.writeHead(202, { 'content-length': 0 })
      response.end()
    })
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  response.flushHeaders()
  subscribers.add(response)
  request.once('close', () => subscribers.delete(response))
})

const broadcast = kind === 'ws' ? await toWebSockets() : toStreams

function toStreams(body) {
  const event = `data: ${body}\n\n`
  for (const stream of subscribers) stream.write(event)
}

async function toWebSockets() {
  const { WebSocketServer } = await import('ws')
  const sockets = new WebSocketServer({ server, path: '/events', perMessageDeflate: false })
  sockets.on('connection', (socket) => socket.on('error', () => socket.terminate()))
  return (body) => {
    for (const socket of sockets.clients) socket.send(body, { binary: false })
  }
}

server.keepAliveTimeout = 60_000
server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => console.log(`listening on http://127.0.0.1:${server.address().port}`))
process.once('SIGTERM', () => process.exit(0))
