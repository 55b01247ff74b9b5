// Turns with traces exported over OTLP/HTTP, beside the same turns without: to a collector that takes them, and to some that do not.
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { LOAD_CONFIG, runLoad, startBare, startSluice } from '../lib/sluice.mjs'

const MAX_SECS = 20
/** Nothing listens there. */
const DEAD = 'http://127.0.0.1:9'

const tracingTo = (endpoint) => `${LOAD_CONFIG}\n[observability]\nbackend = "otel"\notel_endpoint = "${endpoint}"\n`

/** One fresh daemon with this configuration under one load. */
async function underLoad(scratch, config, load) {
  const ownScratch = mkdtempSync(join(scratch, 'traced-'))
  const server = await startSluice({ scratch: ownScratch, config, profile: 'full' })
  try {
    const { url, token, pid } = server
    return await runLoad({ scratch: ownScratch, name: 'post', job: { url, token, pid, maxSecs: MAX_SECS, ...load } })
  } finally {
    await server.stop()
    rmSync(ownScratch, { recursive: true, force: true })
  }
}

async function withCollector(scratch, mode, use) {
  if (mode === 'dead') return use(DEAD)
  const collector = await startBare({ scratch, name: 'collector', args: [mode] })
  try {
    return await use(collector.url)
  } finally {
    await collector.stop()
  }
}

export async function measureTracing({ scratch, rounds, scale }) {
  const many = { connections: 16, warmup: scale(2000), requests: scale(20_000) }
  const one = { connections: 1, warmup: 300, requests: scale(4000) }
  const traced = (mode, load) => withCollector(scratch, mode, (url) => underLoad(scratch, tracingTo(url), load))
  return rounds({ full: 5, quick: 2 }, async () => {
    const bareMany = await underLoad(scratch, LOAD_CONFIG, many)
    const oursMany = await traced('takes', many)
    const row = (ours, bare, figure) => ({ ours: ours[figure], bare: bare[figure], detail: { ours, bare } })
    const bareOne = await underLoad(scratch, LOAD_CONFIG, one)
    const found = { 'otel-throughput': row(oursMany, bareMany, 'perSec') }
    for (const mode of ['dead', 'slow', 'overloaded', 'hangs']) found[`otel-${mode}`] = row(await traced(mode, one), bareOne, 'p50Ms')
    return found
  })
}
