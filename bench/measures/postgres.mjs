// The store on PostgreSQL: durable accepts against a bare server, and the whole life of messages against hand-written SQL.
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { installJobPeers } from '../lib/job-peers.mjs'
import { startServer } from '../lib/postgres-server.mjs'
import { runLoad, startBare, startSluice } from '../lib/sluice.mjs'
import { ingressConfig } from './ingress.mjs'

const MAX_SECS = 60
/** Longer than any load, so that no turn ends during a load. */
const MODEL_SECS = 300
const LANES = [32, 128]
const PEERS = ['dbos', 'pg-boss', 'graphile']
/** Peers take many times as long for a message. */
const PEER_COUNT = 2000

const config = ({ modelUrl, databaseUrl }) => `[store]
backend = "postgres"
url = "${databaseUrl}"

${ingressConfig({ modelUrl })}`

/** Starts a database and a daemon or a bare server on it, and runs the loads. Adds the processor time of the database to each result. */
async function underLoad(scratch, start, loads) {
  const own = mkdtempSync(join(scratch, 'postgres-'))
  const database = await startServer()
  const server = await start(own, database.url)
  try {
    const results = []
    for (const load of loads) {
      const post = (requests) =>
        runLoad({
          scratch: own,
          name: 'post',
          job: { url: server.url, token: server.token, pid: server.pid, kind: 'chatapp', maxSecs: MAX_SECS, ...load, warmup: 0, requests },
        })
      await post(load.warmup)
      const begun = await database.begin()
      const result = await post(load.requests)
      const { cpuUs } = await database.end(begun)
      results.push({ ...result, databaseCpuUs: cpuUs / load.requests, bothCpuUs: result.cpuUs + cpuUs / load.requests })
    }
    return results
  } finally {
    await server.stop()
    await database.stop()
    rmSync(own, { recursive: true, force: true })
  }
}

const row = (ours, bare) => ({
  ours: ours.perSec,
  bare: bare.perSec,
  oursCpuUs: ours.bothCpuUs,
  bareCpuUs: bare.bothCpuUs,
  detail: { ours, bare },
})

export async function measurePostgresIngress({ scratch, rounds, scale }) {
  const loads = [16, 64].map((connections) => ({ connections, warmup: scale(4000), requests: scale(16_000) }))
  return rounds({ full: 5, quick: 1 }, async () => {
    const model = await startBare({ scratch, name: 'model', args: [String(MODEL_SECS)] })
    try {
      const bare = await underLoad(scratch, (own, url) => startBare({ scratch: own, name: 'postgres-webhook', args: [url] }), loads)
      const ours = await underLoad(
        scratch,
        (own, databaseUrl) => startSluice({ scratch: own, profile: 'full', config: config({ modelUrl: model.url, databaseUrl }) }),
        loads,
      )
      return { 'postgres-ingress-16': row(ours[0], bare[0]), 'postgres-ingress-64': row(ours[1], bare[1]) }
    } finally {
      await model.stop()
    }
  })
}

export async function measurePostgresLife({ scratch, rounds, scale, note, peers }) {
  const peersFolder = peers ? installJobPeers() : undefined
  return rounds({ full: 5, quick: 1 }, async () => {
    const life = (side, inFlight, pageImages = false) =>
      runLoad({
        scratch,
        name: 'postgres-life',
        job: { side, inFlight, pageImages, warmup: scale(4000), accepts: scale(8000), count: scale(8000) },
      })
    const values = {}
    for (const lanes of LANES) {
      const floor = await life('floor', lanes)
      const ours = await life('ours', lanes)
      values[`postgres-life-${lanes}`] = { ours: ours.life.serverUs, bare: floor.life.serverUs, detail: { ours, floor } }
      if (lanes !== LANES[0]) continue
      values['postgres-wal-accept'] = { ours: ours.accept.walBytes / 1000, bare: floor.accept.walBytes / 1000 }
      values['postgres-wal-life'] = { ours: ours.life.walBytes / 1000, bare: floor.life.walBytes / 1000 }
    }
    const ours = values[`postgres-life-${LANES[0]}`]
    for (const side of peers ? PEERS : []) {
      const job = { side, peersFolder, inFlight: LANES[0], warmup: scale(PEER_COUNT), accepts: 0, count: scale(PEER_COUNT) }
      const { life: peer } = await runLoad({ scratch, name: 'postgres-life', job })
      values[`postgres-${side}`] = { ours: ours.ours, bare: peer.serverUs, detail: { peer } }
    }
    const images = await life('ours', LANES[0], true)
    values['postgres-wal-images'] = { ours: images.life.walBytes / 1000 }
    note(`WAL of a life with a checkpoint before: ${images.life.walBytes.toFixed(0)} B`)
    return values
  })
}
