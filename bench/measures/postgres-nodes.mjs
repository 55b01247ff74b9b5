// Whole messages on two nodes of a cluster against one: each is accepted, answered and sent. Requests alternate between the nodes, so that
// every other message is accepted by a node that does not own its conversation.
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { threadsCpuMs } from '../lib/machine.mjs'
import { startPlatform } from '../lib/platform.mjs'
import { startServer } from '../lib/postgres-server.mjs'
import { newDataDir, runLoad, startSluice } from '../lib/sluice.mjs'
import { wholeMessagesConfig } from '../load/chatapp-requests.mjs'

const LOAD = { connections: 64, warmup: 0, kind: 'chatapp', maxSecs: 120 }
const SHARDS = 256
const POLL_MS = 20
const BALANCED_MS_MAX = 30_000
const ANSWERED_MS_MAX = 120_000

/** The same number of turns on all nodes together, so that commits have as many writes to share. */
const TURNS = 64

const nodeConfig = ({ name, count, databaseUrl, apiUrl }) => `[store]
backend = "postgres"
url = "${databaseUrl}"

[cluster]
name = "bench"
node = "${name}"
config = "file"

[agent]
max_concurrent_turns = ${TURNS / count}

${wholeMessagesConfig(apiUrl)}`

async function until(what, msMax, isTrue) {
  for (const endMs = performance.now() + msMax; !(await isTrue()); await sleep(POLL_MS))
    if (performance.now() > endMs) throw new Error(`${what} for ${msMax / 1000} s`)
}

/** Starts the nodes one after the other, with the key of the first one, and waits until each owns its share. */
async function startNodes({ scratch, count, database, apiUrl, undo }) {
  const nodes = []
  let key
  for (let at = 0; at < count; at++) {
    const dataDir = newDataDir(scratch)
    if (key) copyFileSync(key, join(dataDir, 'secret.key'))
    const node = await startSluice({
      scratch,
      dataDir,
      profile: 'full',
      config: nodeConfig({ name: `node-${at}`, count, databaseUrl: database.url, apiUrl }),
    })
    undo.defer(() => node.stop())
    nodes.push(node)
    key ??= join(dataDir, 'secret.key')
  }
  const shares = `SELECT count(*)::int AS shards FROM sluice.leases WHERE shard_from IS NOT NULL GROUP BY process`
  await until('The nodes did not share the shards', BALANCED_MS_MAX, async () => {
    const held = (await database.query(shares)).map(({ shards }) => shards)
    return held.length === count && held.every((shards) => shards === SHARDS / count)
  })
  return nodes
}

/** Resolves to the processor time of the nodes together, and of the database, for one message. */
async function wholeMessages({ scratch, count, warmup, requests }) {
  await using undo = new AsyncDisposableStack()
  const own = mkdtempSync(join(scratch, 'nodes-'))
  undo.defer(() => rmSync(own, { recursive: true, force: true }))
  const platform = await startPlatform({ answerMs: 5 })
  undo.defer(() => platform.close())
  const database = await startServer()
  undo.defer(() => database.stop())
  const nodes = await startNodes({ scratch: own, count, database, apiUrl: platform.url, undo })
  const [{ url, token, pid }] = nodes
  let answered = 0
  const run = async (messages) => {
    const job = { ...LOAD, url, urls: nodes.map((node) => node.url), token, pid, requests: messages, first: answered }
    answered += messages
    const load = await runLoad({ scratch: own, name: 'post', job })
    await until('Messages were not answered', ANSWERED_MS_MAX, () => platform.seen.answered >= answered)
    return load
  }
  await run(warmup)
  const nodesCpuMs = () => nodes.reduce((sum, node) => sum + threadsCpuMs(node.pid), 0)
  const before = nodesCpuMs()
  const begun = await database.begin()
  const startedMs = performance.now()
  const { perSec: acceptedPerSec } = await run(requests)
  const secs = (performance.now() - startedMs) / 1000
  const { cpuUs, walBytes } = await database.end(begun)
  const nodeUs = ((nodesCpuMs() - before) * 1000) / requests
  if (platform.seen.doubled > 0) throw new Error(`${platform.seen.doubled} messages were answered twice`)
  const serverUs = cpuUs / requests
  return { nodeUs, serverUs, bothUs: nodeUs + serverUs, walBytes: walBytes / requests, acceptedPerSec, perSec: requests / secs }
}

export async function measurePostgresNodes({ scratch, rounds, scale }) {
  let round = 0
  return rounds({ full: 5, quick: 2 }, async () => {
    const load = { scratch, warmup: Math.max(1024, scale(4096)), requests: Math.max(2048, scale(16_384)) }
    const results = []
    // In turns, because the machine may be busier in one half of a round.
    for (const count of round++ % 2 ? [2, 1] : [1, 2]) results[count] = await wholeMessages({ ...load, count })
    const [, one, two] = results
    const detail = { one, two }
    return {
      'postgres-nodes': { ours: two.nodeUs, bare: one.nodeUs, detail },
      'postgres-nodes-both': { ours: two.bothUs, bare: one.bothUs, detail },
    }
  })
}
