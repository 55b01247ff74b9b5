// A minimal Node server for webhooks: checks the signature, parses the body, remembers the key and answers.
// `node webhook.mjs durable FILE` answers after a group commit to SQLite with full sync; `node webhook.mjs memory` keeps keys in memory.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
import { DatabaseSync } from 'node:sqlite'

const SECRET = 'bench-secret'
const KEYS_MAX = 10_000
const BATCH_MAX = 512
const ANSWER = Buffer.from('{"ok":true}')

/** Commits all requests of one tick of the event loop in one transaction. */
function durableStore(file) {
  const database = new DatabaseSync(file)
  database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    CREATE TABLE inbox (key TEXT PRIMARY KEY, at INTEGER NOT NULL, body BLOB NOT NULL) STRICT`)
  const [begin, commit] = [database.prepare('BEGIN IMMEDIATE'), database.prepare('COMMIT')]
  const insert = database.prepare('INSERT OR IGNORE INTO inbox (key, at, body) VALUES (?, ?, ?)')
  let queue = []
  const flush = () => {
    const batch = queue
    if (batch.length === 0) return
    queue = []
    begin.run()
    for (const { key, body } of batch) insert.run(key, Date.now(), body)
    commit.run()
    for (const { done } of batch) done()
  }
  return (key, body, done) => {
    const waiting = queue.push({ key, body, done })
    if (waiting === 1) setImmediate(flush)
    else if (waiting >= BATCH_MAX) flush()
  }
}

/** Forgets the oldest key first, with a ring: finding the oldest key of a large set iterates over its deleted entries. */
function memoryStore() {
  const keys = new Set()
  const ring = new Array(KEYS_MAX)
  let next = 0
  return (key, _body, done) => {
    if (!keys.has(key)) {
      if (keys.size >= KEYS_MAX) keys.delete(ring[next])
      ring[next] = key
      next = (next + 1) % KEYS_MAX
      keys.add(key)
    }
    done()
  }
}

function isSigned(body, signature) {
  if (typeof signature !== 'string' || signature.length !== 71 || !signature.startsWith('sha256=')) return false
  const wanted = createHmac('sha256', SECRET).update(body).digest()
  const given = Buffer.from(signature.slice(7), 'hex')
  return given.length === wanted.length && timingSafeEqual(given, wanted)
}

function parse(body) {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

/** Returns the message id of a chatapp message, or the idempotency key of a plain message. */
const keyOf = (payload, headers) =>
  payload?.entry?.[0]?.changes?.[0]?.value?.messages?.[0]?.id ?? (payload?.message && headers['x-idempotency-key'])

function refuse(response, status) {
  response.writeHead(status, { 'content-length': 0 })
  response.end()
}

const [mode, file] = process.argv.slice(2)
const store = mode === 'durable' ? durableStore(file) : memoryStore()

function receive(request, response, body) {
  if (!isSigned(body, request.headers['x-hub-signature-256'])) return refuse(response, 401)
  const key = keyOf(parse(body), request.headers)
  if (typeof key !== 'string') return refuse(response, 400)
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
