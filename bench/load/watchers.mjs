// Subscribes clients to every event of a daemon until SIGTERM. `node watchers.mjs JOB`, JOB as JSON: {url, token, sse, ws}. Prints
// `listening on URL` once all are subscribed, as a server does, and serves the number of received events there.
import { createServer } from 'node:http'
import { subscribe } from './event-stream.mjs'

const { url, token, sse, ws } = JSON.parse(process.argv[2])
const seen = { bytes: 0 }
const end = (error) => {
  console.error(error)
  process.exit(1)
}
const onBytes = (bytes) => {
  seen.bytes += bytes
}
for (const [kind, path, count] of [
  ['sse', '/api/events', sse],
  ['ws', '/ws/events', ws],
])
  for (let client = 0; client < count; client++)
    await subscribe({ kind, url: `${url}${path}`, token, onEvent: () => {}, onEnd: end, onBytes })
const server = createServer((_, response) => response.end(JSON.stringify(seen)))
server.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}`))
process.once('SIGTERM', () => process.exit(0))
