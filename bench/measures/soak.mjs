// Half an hour of messages with their turns at a steady rate: checks for growth, and that every message gets exactly one reply.
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspectable } from '../lib/look-inside.mjs'
import { startPlatform } from '../lib/platform.mjs'
import { runLoad, startSluice } from '../lib/sluice.mjs'
import { untilDone } from '../lib/until-done.mjs'
import { wholeMessagesConfig } from '../load/chatapp-requests.mjs'

const LOAD = { connections: 16, perSec: 100, secs: 60 }
/** The minute that the end is compared with. By then, everything that is loaded or cached once is in memory. */
const SETTLED_MINUTE = 5
const QUIET_MS = 2000
const MIB = 1024 * 1024

const growth = (first, last, key) => last[key] - first[key]

/** Runs one round, also on a busy machine: the counts do not depend on the speed of the machine. */
export async function measureSoak({ scratch, minutes, note }) {
  const own = mkdtempSync(join(scratch, 'soak-'))
  const platform = await startPlatform()
  const inside = inspectable(own, { counts: true })
  const server = await startSluice({ scratch: own, config: wholeMessagesConfig(platform.url), nodeArgs: inside.nodeArgs })
  const seen = []
  let sent = 0
  try {
    for (let minute = 1; minute <= minutes; minute++) {
      const load = await runLoad({
        scratch: own,
        name: 'paced',
        job: { url: server.url, first: (minute - 1) * LOAD.perSec * LOAD.secs, ...LOAD },
      })
      sent += load.sent - load.failed
      await untilDone(server)
      await sleep(QUIET_MS)
      const { heapUsed, signals, timers, listeners } = await inside.ask(server.pid)
      const [lost, doubled] = [sent - platform.seen.answered, platform.seen.doubled]
      seen.push({ minute, sent, lost, doubled, signals, timers, listeners, heapMiB: heapUsed / MIB })
      note(`soak ${JSON.stringify(seen.at(-1))}`)
    }
  } finally {
    await server.stop()
    platform.close()
    rmSync(own, { recursive: true, force: true })
  }
  const settled = seen[Math.min(SETTLED_MINUTE, Math.ceil(minutes / 3)) - 1]
  const last = seen.at(-1)
  const tens = Math.max(1, last.minute - settled.minute) / 10
  return [
    {
      'soak-signals': { ours: growth(settled, last, 'signals'), detail: seen },
      'soak-timers': { ours: growth(settled, last, 'timers') },
      'soak-listeners': { ours: growth(settled, last, 'listeners') },
      'soak-heap': { ours: growth(settled, last, 'heapMiB') / tens },
      'soak-lost': { ours: last.lost },
      'soak-doubled': { ours: last.doubled },
    },
  ]
}
