// POST /webhook: turns, which are durable before they are answered, and duplicates, which run no turn.
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pair } from '../lib/pair.mjs'
import { runLoad, startBare, startSluice } from '../lib/sluice.mjs'

const MAX_SECS = 20

/** Runs the loads one after the other on a new server; returns their results. */
async function underLoad(scratch, start, loads) {
  const ownScratch = mkdtempSync(join(scratch, 'load-'))
  const server = await start(ownScratch)
  try {
    const results = []
    for (const load of loads) {
      const { url, token, pid } = server
      results.push(await runLoad({ scratch: ownScratch, name: 'post', job: { url, token, pid, maxSecs: MAX_SECS, ...load } }))
    }
    return results
  } finally {
    await server.stop()
    rmSync(ownScratch, { recursive: true, force: true })
  }
}

const sluice = (scratch) => startSluice({ scratch })
const bareDurable = (scratch) => startBare({ scratch, name: 'webhook', args: ['durable', join(scratch, 'inbox.db')] })
const bareMemory = (scratch) => startBare({ scratch, name: 'webhook', args: ['memory'] })

export async function measureTurns({ scratch, rounds, scale }) {
  const loads = [
    { connections: 1, warmup: 300, requests: scale(2000) },
    { connections: 16, warmup: scale(2000), requests: scale(10_000) },
  ]
  return rounds({ full: 9, quick: 2 }, async () => {
    const [bareOne, bareMany] = await underLoad(scratch, bareDurable, loads)
    const [one, many] = await underLoad(scratch, sluice, loads)
    return {
      'webhook-latency': pair(one, bareOne, 'p50Ms'),
      'webhook-throughput': pair(many, bareMany, 'perSec'),
    }
  })
}

export async function measureDuplicates({ scratch, rounds, scale }) {
  const loads = [{ connections: 16, sameKey: true, warmup: scale(2000), requests: scale(40_000) }]
  return rounds({ full: 9, quick: 2 }, async () => {
    const [bare] = await underLoad(scratch, bareMemory, loads)
    const [ours] = await underLoad(scratch, sluice, loads)
    return { 'duplicate-throughput': pair(ours, bare, 'perSec') }
  })
}
