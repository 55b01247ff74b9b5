// A minimal Node server for webhooks: checks the signature, parses the body, remembers the key and answers.
// `node webhook.mjs durable FILE` answers after a group commit to SQLite with full sync; `node webhook.mjs messages FILE` does so with the
// row and the indexes in which Sluice stores a message; `node webhook.mjs memory` keeps keys in memory.
import { createHmac, hash, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
import { DatabaseSync } from 'node:sqlite'

const SECRET = 'bench-secret'
const KEYS_MAX = 10_000
const BATCH_MAX = 512
const ANSWER = Buffer.from('{"ok":true}')

const PLAIN_ROW = {
  schema: 'CREATE TABLE inbox (key TEXT PRIMARY KEY, at INTEGER NOT NULL, body BLOB NOT NULL) STRICT',
  insert: 'INSERT OR IGNORE INTO inbox (key, at, body) VALUES (?, ?, ?)',
  valuesOf: ({ key, body }) => [key, Date.now(), body],
}

/** The row of packages/store/src/schema/schema.ts, with its indexes. The key is a hash, whose place in the index is random. */
const MESSAGE_ROW = {
  schema: `
    CREATE TABLE inbox (
      number INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, state TEXT NOT NULL DEFAULT 'pending', attempts INTEGER NOT NULL DEFAULT 0,
      received_at REAL NOT NULL, next_at REAL, ended_at REAL, turn_id TEXT, error TEXT, kind TEXT, channel TEXT NOT NULL,
      account TEXT NOT NULL, sender TEXT NOT NULL, session TEXT NOT NULL, message_id TEXT NOT NULL, verdict TEXT NOT NULL, batch INTEGER,
      trace TEXT, draft TEXT, replayed_at REAL, approval_run_id TEXT, approval_step_id TEXT, message_json TEXT, raw BLOB
    ) STRICT;
    CREATE INDEX inbox_by_state ON inbox (state, channel) WHERE state <> 'done';
    CREATE INDEX inbox_by_end ON inbox (ended_at) WHERE ended_at IS NOT NULL;
    CREATE INDEX inbox_by_batch ON inbox (batch) WHERE batch IS NOT NULL AND state <> 'done';
    CREATE INDEX inbox_done_by_channel ON inbox (channel) WHERE state = 'done'`,
  insert: `
    INSERT INTO inbox (key, received_at, kind, channel, account, sender, session, message_id, verdict, raw)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
  valuesOf({ key, body, payload }) {
    const { metadata, messages } = payload.entry[0].changes[0].value
    const [account, { from }] = [metadata.phone_number_id, messages[0]]
    const hashed = hash('sha256', JSON.stringify(['chatapp', account, key]), 'buffer').subarray(0, 16)
    const session = `channel:chatapp/${account}/${from}`
    return [hashed, Date.now(), 'turn', 'chatapp', account, from, session, key, 'x-hub-signature-256', body]
  },
}

/** Commits all requests of one tick of the event loop in one transaction. */
function durableStore(file, { schema, insert: text, valuesOf }) {
  const database = new DatabaseSync(file)
  database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; ${schema}`)
  const [begin, commit] = [database.prepare('BEGIN IMMEDIATE'), database.prepare('COMMIT')]
  const insert = database.prepare(text)
  let queue = []
  const flush = () => {
    const batch = queue
    if (batch.length === 0) return
    queue = []
    begin.run()
    for (const request of batch) insert.run(...valuesOf(request))
    commit.run()
    for (const { done } of batch) done()
  }
  return (request) => {
    const waiting = queue.push(request)
    if (waiting === 1) setImmediate(flush)
    else if (waiting >= BATCH_MAX) flush()
  }
}

/** Forgets the oldest key first, with a ring: finding the oldest key of a large set iterates over its deleted entries. */
function memoryStore() {
  const keys = new Set()
  const ring = new Array(KEYS_MAX)
  let next = 0
  return ({ key, done }) => {
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
const ROWS = { durable: PLAIN_ROW, messages: MESSAGE_ROW }
const store = ROWS[mode] ? durableStore(file, ROWS[mode]) : memoryStore()

function receive(request, response, body) {
  if (!isSigned(body, request.headers['x-hub-signature-256'])) return refuse(response, 401)
  const payload = parse(body)
  const key = keyOf(payload, request.headers)
  if (typeof key !== 'string') return refuse(response, 400)
  const done = () => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': ANSWER.length })
    response.end(ANSWER)
  }
  store({ key, body, payload, done })
}

const server = createServer((request, response) => {
  const chunks = []
  request.on('data', (chunk) => chunks.push(chunk))
  request.on('end', () => receive(request, response, chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)))
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}`))
process.once('SIGTERM', () => process.exit(0))
