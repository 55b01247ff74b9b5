// Turns with traces exported over OTLP/HTTP, compared with turns without tracing: to a working collector and to faulty ones.
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { LOAD_CONFIG, runLoad, startBare, startSluice } from '../lib/sluice.mjs'

const MAX_SECS = 120
/** An address without a server. */
const DEAD = 'http://127.0.0.1:9'
const FAULTS = ['dead', 'slow', 'overloaded', 'hangs']

const tracingTo = (endpoint) => `${LOAD_CONFIG}\n[observability]\nbackend = "otel"\notel_endpoint = "${endpoint}"\n`

/** Runs the same load alternately on a daemon without tracing and on a daemon for each collector. */
async function beside(scratch, collectors, load) {
  const own = mkdtempSync(join(scratch, 'traced-'))
  const running = []
  const started = async (server) => {
    running.push(await server)
    return running.at(-1)
  }
  try {
    const configs = [LOAD_CONFIG]
    for (const mode of collectors) {
      const endpoint = mode === 'dead' ? DEAD : (await started(startBare({ scratch: own, name: 'collector', args: [mode] }))).url
      configs.push(tracingTo(endpoint))
    }
    const targets = []
    for (const config of configs) targets.push(await started(startSluice({ scratch: own, config, profile: 'full' })))
    return await runLoad({ scratch: own, name: 'turns-beside', job: { targets, maxSecs: MAX_SECS, ...load } })
  } finally {
    for (const server of running.toReversed()) await server.stop()
    rmSync(own, { recursive: true, force: true })
  }
}

export async function measureTracing({ scratch, rounds, scale }) {
  return rounds({ full: 5, quick: 2 }, async () => {
    const [bare, ours] = await beside(scratch, ['takes'], { connections: 16, slices: scale(50), requests: 400 })
    const [untraced, ...traced] = await beside(scratch, FAULTS, { connections: 1, slices: scale(400), requests: 5 })
    const latencies = FAULTS.map((mode, at) => [
      `otel-${mode}`,
      { ours: traced[at].p50Ms, bare: untraced.p50Ms, detail: { ours: traced[at], bare: untraced } },
    ])
    return { 'otel-throughput': { ours: ours.perSec, bare: bare.perSec, detail: { ours, bare } }, ...Object.fromEntries(latencies) }
  })
}
