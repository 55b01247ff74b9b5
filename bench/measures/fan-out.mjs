// One event for many subscribers, over SSE and over WebSocket: deliveries a second, latency, and the memory of an idle subscriber.
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { runLoad, startBare, startSluice } from '../lib/sluice.mjs'

const MAX_SECS = 30
const PATHS = { sse: '/api/events', ws: '/ws/events' }

async function fanOut(scratch, start, paths, load) {
  const ownScratch = mkdtempSync(join(scratch, 'events-'))
  const { url, token, pid, stop } = await start(ownScratch)
  try {
    const target = { url: `${url}${paths.subscribe}`, publishUrl: `${url}${paths.publish}`, token, pid }
    return await runLoad({ scratch: ownScratch, name: 'fan-out', job: { ...target, maxSecs: MAX_SECS, ...load } })
  } finally {
    await stop()
    rmSync(ownScratch, { recursive: true, force: true })
  }
}

/** The number of clients is the same with --quick: the fixed memory of a server would weigh more with few clients. */
const loadOf = (kind, scale) => ({
  kind,
  clients: 1000,
  idleSecs: 1,
  warmup: 20,
  pacedEvents: scale(40),
  pacedPerSec: 10,
  burstEvents: scale(200),
  burstWindow: 4,
})

/** `kind` is `sse` or `ws`. */
export async function measureFanOut({ scratch, rounds, scale }, kind) {
  const load = loadOf(kind, scale)
  const startBareOne = (ownScratch) => startBare({ scratch: ownScratch, name: 'events', args: [kind] })
  const startOurs = (ownScratch) => startSluice({ scratch: ownScratch })
  return rounds({ full: 9, quick: 2 }, async () => {
    const bare = await fanOut(scratch, startBareOne, { subscribe: '/events', publish: '/publish' }, load)
    const ours = await fanOut(scratch, startOurs, { subscribe: PATHS[kind], publish: '/api/channel-events' }, load)
    const detail = { ours, bare }
    return {
      [`${kind}-deliveries`]: {
        ours: ours.deliveriesPerSec,
        bare: bare.deliveriesPerSec,
        oursCpuUs: ours.cpuUs,
        bareCpuUs: bare.cpuUs,
        detail,
      },
      [`${kind}-latency`]: { ours: ours.pacedP99Ms, bare: bare.pacedP99Ms, detail },
      [`${kind}-memory`]: { ours: ours.kibPerClient, bare: bare.kibPerClient, detail },
    }
  })
}
