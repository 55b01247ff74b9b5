// A slow model: `node model.mjs SECONDS` answers every chat completion with one word after this time.
import { createServer } from 'node:http'

const waitMs = Number(process.argv[2]) * 1000
const ANSWER = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'slow',
  choices: [{ index: 0, message: { role: 'assistant', content: 'done' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
})
const CHUNK = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'slow' }
const STREAM = [
  { ...CHUNK, choices: [{ index: 0, delta: { role: 'assistant', content: 'done' }, finish_reason: null }] },
  {
    ...CHUNK,
    choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  },
]
  .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
  .join('')

const server = createServer((request, response) => {
  const chunks = []
  request.on('data', (chunk) => chunks.push(chunk))
  request.on('end', () => {
    const isStream = Buffer.concat(chunks).includes('"stream":true')
    const answer = () => {
      response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' })
      response.end(isStream ? `${STREAM}data: [DONE]\n\n` : ANSWER)
    }
    const timer = setTimeout(answer, waitMs)
    response.on('close', () => clearTimeout(timer))
  })
})
server.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}`))
process.once('SIGTERM', () => process.exit(0))
