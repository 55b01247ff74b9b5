// Replies a second to one account of a platform that takes 250 ms for each answer, in the order of each conversation.
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { threadsCpuMs } from '../lib/machine.mjs'
import { startPlatform } from '../lib/platform.mjs'
import { runLoad, startSluice } from '../lib/sluice.mjs'
import { untilDone } from '../lib/until-done.mjs'
import { wholeMessagesConfig } from '../load/chatapp-requests.mjs'

const ANSWER_MS = 250
const MESSAGES = 2000
/** The number of sends at once grows during the first replies. */
const WARM_UP = 600
const LOAD = { connections: 16, warmup: 0, kind: 'chatapp', maxSecs: 60 }

export async function measureReplies({ scratch, rounds, scale }) {
  const requests = Math.max(2 * WARM_UP, scale(MESSAGES))
  return rounds({ full: 9, quick: 1 }, async () => {
    const own = mkdtempSync(join(scratch, 'replies-'))
    const platform = await startPlatform({ answerMs: ANSWER_MS })
    const server = await startSluice({ scratch: own, config: wholeMessagesConfig(platform.url) })
    try {
      const before = threadsCpuMs(server.pid)
      await runLoad({ scratch: own, name: 'post', job: { url: server.url, pid: server.pid, ...LOAD, requests } })
      await untilDone(server)
      const { answered, doubled, outOfOrder, atOnceMax } = platform.seen
      const detail = { ...platform.seen, cpuUs: ((threadsCpuMs(server.pid) - before) * 1000) / answered }
      if (doubled > 0 || answered < requests) throw new Error(`${requests - answered} of ${requests} were not answered, ${doubled} twice`)
      return {
        'replies-rate': { ours: platform.perSec(WARM_UP), oursCpuUs: detail.cpuUs, detail },
        'replies-order': { ours: outOfOrder, detail: { atOnceMax } },
      }
    } finally {
      await server.stop()
      platform.close()
      rmSync(own, { recursive: true, force: true })
    }
  })
}
