// A minimal trace collector: `node collector.mjs MODE` accepts every batch (`takes`), accepts it after two seconds (`slow`), answers 503
// (`overloaded`), or never answers (`hangs`).
import { createServer } from 'node:http'

const SLOW_MS = 2000
const mode = process.argv[2]

const server = createServer((request, response) => {
  request.resume().on('end', () => {
    const answer = () => response.writeHead(mode === 'overloaded' ? 503 : 200, { 'content-type': 'application/json' }).end('{}')
    if (mode === 'slow') setTimeout(answer, SLOW_MS)
    else if (mode !== 'hangs') answer()
  })
})
server.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}`))
process.once('SIGTERM', () => process.exit(0))
