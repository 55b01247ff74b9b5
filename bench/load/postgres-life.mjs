// The whole life of messages in PostgreSQL: kept, started, finished with its history and its reply, sent, and noted as sent.
// `node postgres-life.mjs JOB`, JOB as JSON: {side, count, inFlight, warmup, accepts, pageImages, peersFolder}. `side` is `ours`, the store of
// Sluice, `floor`, hand-written SQL with the same durability and the same check of a lease in each commit, or a peer of
// `lib/job-peers.mjs`, which measures no accepts. Prints
// {accept, life} as JSON, each {perMessage: {nodeUs, walBytes, serverUs}}.

import { openJobPeer } from '../lib/job-peers.mjs'
import { CHANNEL, inFlight, messageOf } from '../lib/life-messages.mjs'
import { openFloor } from '../lib/postgres-floor.mjs'
import { startServer } from '../lib/postgres-server.mjs'

const job = JSON.parse(process.argv[2])
const server = await startServer({ pageImages: job.pageImages })

async function openOurs() {
  const { openPostgresStore } = await import('../../packages/store-postgres/src/open-store.ts')
  const store = await openPostgresStore({ url: server.url, node: 'bench' })
  const lease = await store.leases.acquire('shards/0-255')
  const owned = store.under(lease)
  const keep = async (one) => {
    const [number] = await owned.inbox.keep({
      ...CHANNEL,
      raw: one.raw,
      receivedAtMs: Date.now(),
      messages: [{ message: one.message, session: one.session, kind: 'message' }],
    })
    return number
  }
  return {
    keep,
    async live(one) {
      const number = await keep(one)
      const started = await owned.inbox.start(number, one.turn, 5, one.message)
      const reply = {
        ...CHANNEL,
        to: one.message.to,
        text: one.answer,
        part: 1,
        parts: 1,
        clientId: one.turn,
        turnId: one.turn,
        createdAtMs: Date.now(),
      }
      const [sending] = await owned.turns.finish({
        id: started.turnId,
        agent: 'main',
        sessionId: one.session,
        owner: 'channel:chatapp',
        source: 'chatapp',
        status: 'done',
        input: one.message.text,
        response: one.answer,
        model: 'm',
        error: null,
        inputTokens: 10,
        outputTokens: 10,
        costUsd: 0,
        attempts: 1,
        createdAtMs: Date.now(),
        endedAtMs: Date.now(),
        messages: [
          { role: 'user', content: [{ type: 'text', text: one.message.text }] },
          { role: 'assistant', content: [{ type: 'text', text: one.answer }] },
        ],
        delivery: { inbox: number, replies: [reply] },
      })
      await owned.outbox.start(sending)
      await owned.outbox.sent(sending, { providerId: `wamid.${one.turn}`, atMs: Date.now() })
    },
    close: () => store.close(),
  }
}

async function open() {
  if (job.side === 'ours') return openOurs()
  if (job.side === 'floor') return openFloor(server.url)
  return openJobPeer({ name: job.side, folder: job.peersFolder, url: server.url, concurrency: job.inFlight })
}

const store = await open()
let base = 0
async function measured(count, lanes, work) {
  const first = base
  base += count
  const messages = Array.from({ length: count }, (_, at) => messageOf(first + at))
  const begun = await server.begin()
  const cpu = process.cpuUsage()
  await inFlight(count, lanes, (at) => work(messages[at]))
  const { user, system } = process.cpuUsage(cpu)
  const { walBytes, cpuUs, from, to } = await server.end(begun)
  const stats = job.profile ? await profile(from, to, count) : undefined
  return { nodeUs: (user + system) / count, serverUs: cpuUs / count, walBytes: walBytes / count, ...(stats && { stats }) }
}

async function profile(from, to, count) {
  await server.query('CREATE EXTENSION IF NOT EXISTS pg_walinspect')
  const rows = await server.query(
    'SELECT "resource_manager/record_type" AS type, count, record_size, fpi_size FROM pg_get_wal_stats($1, $2, true) WHERE count > 0 ORDER BY combined_size DESC LIMIT 14',
    [from, to],
  )
  const relations = await server.query(
    `SELECT c.relname, b.resource_manager || '/' || b.record_type AS type, count(*) AS count, sum(block_data_length + block_fpi_length) AS bytes
     FROM pg_get_wal_block_info($1, $2) b JOIN pg_class c ON c.relfilenode = b.relfilenode GROUP BY 1, 2 ORDER BY 4 DESC LIMIT 40`,
    [from, to],
  )
  return {
    types: rows.map(
      (row) =>
        `${row.type} ${(row.count / count).toFixed(2)}x ${(row.record_size / count).toFixed(0)} B + ${(row.fpi_size / count).toFixed(0)} B images`,
    ),
    relations: relations.map((row) => `${row.relname} ${row.type} ${(row.count / count).toFixed(2)}x ${(row.bytes / count).toFixed(0)} B`),
  }
}

await inFlight(job.warmup, job.inFlight, (at) => store.live(messageOf(base + at)))
base += job.warmup
const accept = job.accepts > 0 ? await measured(job.accepts, job.inFlight, store.keep) : undefined
const life = await measured(job.count, job.inFlight, store.live)
await store.close()
await server.stop()
console.log(JSON.stringify({ accept, life }))
// A peer may keep timers.
process.exit()
