// A minimal Node server for webhooks on PostgreSQL: checks the signature, parses the body, and answers after a grouped insert.
// `node postgres-webhook.mjs URL`.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
import pg from 'pg'

const SECRET = 'bench-secret'
const BATCH_MAX = 512
const ANSWER = Buffer.from('{"ok":true}')
const INSERT = {
  name: 'insert',
  text: 'INSERT INTO bare.inbox (key, at, body) SELECT * FROM unnest($1::text[], $2::float8[], $3::bytea[]) ON CONFLICT DO NOTHING',
}

const client = new pg.Client(process.argv[2])
await client.connect()
await client.query('CREATE SCHEMA bare; CREATE TABLE bare.inbox (key text PRIMARY KEY, at float8 NOT NULL, body bytea NOT NULL)')

const queue = []
let isRunning = false

/** Stores everything that arrived during the last commit with the next one. */
async function flush() {
  while (queue.length > 0) {
    const batch = queue.splice(0, BATCH_MAX)
    const column = (name) => batch.map((row) => row[name])
    await client.query({ ...INSERT, values: [column('key'), column('at'), column('body')] })
    for (const { done } of batch) done()
  }
  isRunning = false
}

function store(key, body, done) {
  queue.push({ key, body, at: Date.now(), done })
  if (isRunning) return
  isRunning = true
  setImmediate(flush)
}

function isSigned(body, signature) {
  if (typeof signature !== 'string' || signature.length !== 71 || !signature.startsWith('sha256=')) return false
  const wanted = createHmac('sha256', SECRET).update(body).digest()
  const given = Buffer.from(signature.slice(7), 'hex')
  return given.length === wanted.length && timingSafeEqual(given, wanted)
}

function receive(request, response, body) {
  if (!isSigned(body, request.headers['x-hub-signature-256'])) return void response.writeHead(401, { 'content-length': 0 }).end()
  const key = JSON.parse(body).entry[0].changes[0].value.messages[0].id
  store(key, body, () => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': ANSWER.length })
    response.end(ANSWER)
  })
}

const server = createServer((request, response) => {
  const chunks = []
  request.on('data', (chunk) => chunks.push(chunk))
  request.on('end', () => receive(request, response, chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)))
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}`))
process.once('SIGTERM', () => process.exit(0))
