// POST /chatapp: messages are durable before they are answered, while their turns wait for a slow model.
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { residentMiB } from '../lib/machine.mjs'
import { startNodeRed } from '../lib/node-red.mjs'
import { pair } from '../lib/pair.mjs'
import { newDataDir, runLoad, startBare, startSluice } from '../lib/sluice.mjs'
import { untilDone } from '../lib/until-done.mjs'
import { chatappConfig } from '../load/chatapp-requests.mjs'

const MAX_SECS = 30
/** Longer than any load, so that no turn ends during a load. */
const MODEL_SECS = 120
/** Connections that are never all in use at half of the highest rate. */
const OPEN = { connections: 64, secs: 2 }
const PACED = { connections: 64, perSec: 500, secs: 10 }
const BURST = { connections: 64, requests: 1000 }
const MEMORY_REQUESTS = 20_000
const SETTLE_MS = 2000
const MILLION = 1_000_000
const WARM_UP = 100_000
const SLICE = 5000

/** The configuration of a daemon whose turns wait for the model at `modelUrl`. */
export const ingressConfig = ({ modelUrl, apiUrl, kind = 'openai', retentionMb }) => `[gateway]
webhook_rate_limit_per_minute = 0

[provider]
kind = "${kind}"
${modelUrl ? `base_url = "${modelUrl}/v1"\nmodel = "slow"\napi_key = "bench-key"` : ''}

[delivery]
max_pending = 10000000
${retentionMb ? `retention_mb = ${retentionMb}\n` : ''}
[log]
level = "warn"

${chatappConfig({ apiUrl: apiUrl ?? modelUrl })}`

/** Provides a scratch directory and a slow model to `use`, then removes them. */
async function withModel(scratch, use) {
  const own = mkdtempSync(join(scratch, 'ingress-'))
  const model = await startBare({ scratch: own, name: 'model', args: [String(MODEL_SECS)] })
  try {
    return await use(own, model.url)
  } finally {
    await model.stop()
    rmSync(own, { recursive: true, force: true })
  }
}

const sluice = (modelUrl) => (scratch) => startSluice({ scratch, config: ingressConfig({ modelUrl }) })
/** With the row in which Sluice stores a message. */
const bareDurable = (scratch) => startBare({ scratch, name: 'webhook', args: ['messages', join(scratch, 'inbox.db')] })
const bareMemory = (scratch) => startBare({ scratch, name: 'webhook', args: ['memory'] })

async function post(scratch, { url, token, pid }, load) {
  return runLoad({ scratch, name: 'post', job: { url, token, pid, kind: 'chatapp', maxSecs: MAX_SECS, ...load } })
}

/** Starts a server for `use` in a folder of its own. */
async function withServer(scratch, start, use) {
  const own = mkdtempSync(join(scratch, 'load-'))
  const server = await start(own)
  try {
    return await use(server)
  } finally {
    await server.stop()
    rmSync(own, { recursive: true, force: true })
  }
}

/** Runs the loads one after the other on a new server; returns their results. */
const underLoad = (scratch, start, loads) =>
  withServer(scratch, start, async (server) => {
    const results = []
    for (const load of loads) results.push(await post(scratch, server, load))
    return results
  })

export async function measureIngress({ scratch, rounds, scale, peers }) {
  const loads = [
    { connections: 16, warmup: scale(5000), requests: scale(15_000) },
    { connections: 64, warmup: scale(2000), requests: scale(15_000) },
    { connections: 1, warmup: scale(1000), requests: scale(3000) },
  ]
  return rounds({ full: 9, quick: 2 }, () =>
    withModel(scratch, async (own, modelUrl) => {
      const { bare, ours, open } = await withServer(own, bareDurable, (bareServer) =>
        withServer(own, sluice(modelUrl), (ourServer) => measureBoth(own, bareServer, ourServer, loads)),
      )
      const nodeRed = peers ? await underLoad(own, startNodeRed, loads) : undefined
      const both = (at, key) => pair(ours[at], bare[at], key)
      const beside = (at) => pair(ours[at], nodeRed[at], 'perSec')
      return {
        ...(nodeRed && { 'ingress-peer-1': beside(2), 'ingress-peer-16': beside(0), 'ingress-peer-64': beside(1) }),
        'ingress-1': both(2, 'perSec'),
        'ingress-1-median': both(2, 'p50Ms'),
        'ingress-16': both(0, 'perSec'),
        'ingress-16-p99': both(0, 'p99Ms'),
        'ingress-64': both(1, 'perSec'),
        'ingress-64-p99': both(1, 'p99Ms'),
        'ingress-open-p99': { bare: open.bare.p99Ms, ours: open.ours.p99Ms, detail: open },
      }
    }),
  )
}

/** Runs the loads on each server, then an open loop at half the rate that the slower one reached at 64 connections. */
async function measureBoth(scratch, bareServer, ourServer, loads) {
  const results = { bare: [], ours: [] }
  for (const load of loads) results.bare.push(await post(scratch, bareServer, load))
  for (const load of loads) results.ours.push(await post(scratch, ourServer, load))
  const perSec = Math.max(1, Math.floor(Math.min(results.bare[1].perSec, results.ours[1].perSec) / 2))
  const paced = async ({ url }) => {
    const seen = await runLoad({ scratch, name: 'paced', job: { url, ...OPEN, perSec } })
    if (seen.failed > 0) throw new Error(`${seen.failed} of ${seen.sent} messages of the open loop were not accepted`)
    return seen
  }
  return { ...results, open: { perSec, bare: await paced(bareServer), ours: await paced(ourServer) } }
}

export async function measureRefusals({ scratch, rounds, scale }) {
  const forged = [{ connections: 16, isForged: true, status: 401, warmup: scale(2000), requests: scale(40_000) }]
  const again = [{ connections: 16, sameKey: true, warmup: scale(2000), requests: scale(40_000) }]
  return rounds({ full: 9, quick: 2 }, () =>
    withModel(scratch, async (own, modelUrl) => {
      const [bareForged] = await underLoad(own, bareMemory, forged)
      const [oursForged] = await underLoad(own, sluice(modelUrl), forged)
      const [bareAgain] = await underLoad(own, bareMemory, again)
      const [oursAgain] = await underLoad(own, sluice(modelUrl), again)
      return {
        'ingress-refused': pair(oursForged, bareForged, 'perSec'),
        'ingress-duplicate': pair(oursAgain, bareAgain, 'perSec'),
      }
    }),
  )
}

/** Measures a steady stream and a burst, while every turn takes two minutes. */
export async function measureAcks({ scratch, rounds }) {
  return rounds({ full: 9, quick: 1 }, () =>
    withModel(scratch, async (own, modelUrl) => {
      const server = await sluice(modelUrl)(own)
      try {
        // The first turns load the library of the model, which is not part of receiving messages.
        await post(own, server, { connections: 16, warmup: 0, requests: 200 })
        await sleep(SETTLE_MS)
        const paced = await runLoad({ scratch: own, name: 'paced', job: { url: server.url, ...PACED } })
        if (paced.failed > 0) throw new Error(`${paced.failed} of ${paced.sent} were not accepted`)
        const burst = await post(own, server, { ...BURST, warmup: 0 })
        return { 'ingress-ack': { ours: paced.p99Ms, detail: paced }, 'ingress-burst': { ours: burst.p99Ms, detail: burst } }
      } finally {
        await server.stop()
      }
    }),
  )
}

/** Measures the memory of both sides after the same load. */
export async function measureIngressMemory({ scratch, rounds, scale }) {
  const load = { connections: 16, warmup: 0, requests: scale(MEMORY_REQUESTS) }
  const residentAfter = async (own, start) => {
    const server = await start(mkdtempSync(join(own, 'memory-')))
    try {
      await post(own, server, load)
      await sleep(SETTLE_MS)
      return residentMiB(server.pid)
    } finally {
      await server.stop()
    }
  }
  return rounds({ full: 9, quick: 1 }, () =>
    withModel(scratch, async (own, modelUrl) => ({
      'ingress-memory': { bare: await residentAfter(own, bareDurable), ours: await residentAfter(own, sluice(modelUrl)) },
    })),
  )
}

/** Runs a million messages with their turns. Measures the growth of memory, and the cost of a further message compared with an empty database. */
export async function measureMillion({ scratch, rounds, scale }) {
  return rounds({ full: 1, quick: 1 }, () =>
    withModel(scratch, async (own, modelUrl) => {
      const growth = { connections: 16, warmup: scale(2000), requests: scale(20_000) }
      const [empty] = await underLoad(own, sluice(modelUrl), [growth])
      const dataDir = newDataDir(own)
      const graph = await startBare({ scratch: own, name: 'graph' })
      const server = await startSluice({ scratch: own, dataDir, config: ingressConfig({ kind: 'offline', apiUrl: graph.url }) })
      const resident = []
      try {
        for (let done = 0; done < scale(MILLION); done += SLICE) {
          await post(own, server, { connections: 16, warmup: 0, requests: SLICE, maxSecs: 600 })
          await untilDone(server)
          resident.push({ messages: done + SLICE, MiB: residentMiB(server.pid) })
        }
      } finally {
        await server.stop()
        await graph.stop()
      }
      const full = await startSluice({ scratch: own, dataDir, config: ingressConfig({ modelUrl }) })
      let grown
      try {
        grown = await post(own, full, growth)
      } finally {
        await full.stop()
      }
      const warm = resident.find(({ messages }) => messages >= scale(WARM_UP))
      return {
        'ingress-flat': { ours: resident.at(-1).MiB, bare: warm.MiB, detail: resident },
        'ingress-growth': { ours: 1000 / grown.perSec, bare: 1000 / empty.perSec, detail: { empty, grown } },
      }
    }),
  )
}
