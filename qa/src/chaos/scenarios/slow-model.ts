/** The model answers slowly or never: messages are acknowledged as fast as before. */
import { setTimeout as sleep } from 'node:timers/promises'
import { readStore } from '../read-store.ts'
import { post } from '../request.ts'
import { listening, setStage } from '../stage.ts'
import { type Scenario, unless } from './scenario.ts'
import { kindOf, writeMessage } from './write-message.ts'

export interface SlowModelOptions {
  readonly perSecond: number
  readonly seconds: number
  /** The time until the model answers; infinity means never. */
  readonly answerMs: number
}

const P99_MS_MAX = 50
/** On a loaded machine, an acknowledgement may take this many times as long as an answer of `/health`. */
const NOISE = 2
/** The first requests are slower, because modules are loaded on first use. */
const WARM_UP = 20

export const slowModel =
  ({ perSecond, seconds, answerMs }: SlowModelOptions): Scenario =>
  async (options) => {
    const stage = await setStage({
      ...options,
      answer: () => (Number.isFinite(answerMs) ? sleep(answerMs, undefined, { ref: false }) : new Promise(() => {})),
      pendingMax: 1_000_000,
    })
    const { world, signal } = stage
    const kind = kindOf(world, 'chatapp')
    try {
      const life = stage.begin()
      const url = await listening(life)
      const send = () => post(url, kind.request([writeMessage(world, kind, stage.random.pick(kind.senders))]), signal)
      for (let count = 0; count < WARM_UP; count++) await send()
      const startMs = performance.now()
      const running: ReturnType<typeof send>[] = []
      const healthTimes: Promise<number>[] = []
      // The rate does not depend on the answers.
      for (let count = 0; count < perSecond * seconds; count++) {
        await sleep(Math.max(0, startMs + (count * 1000) / perSecond - performance.now()))
        running.push(send())
        healthTimes.push(healthMs(url))
      }
      const answers = await Promise.all(running)
      const acked = answers.filter(({ status }) => status === 200)
      const times = acked.map(({ tookMs }) => tookMs)
      const [p50Ms, p99Ms, healthP99Ms] = [share(times, 0.5), share(times, 0.99), share(await Promise.all(healthTimes), 0.99)]
      await life.end('SIGKILL')
      const { inbox, sessions } = await readStore(stage.place)
      const answered = sessions.flat().length
      const isFast = p99Ms < P99_MS_MAX || p99Ms < NOISE * healthP99Ms
      return {
        numbers: { acknowledged: acked.length, p50Ms, p99Ms, healthP99Ms, answered },
        violations: [
          ...unless(
            acked.length === answers.length,
            'accepted',
            `${answers.length - acked.length} of ${answers.length} messages were not acknowledged`,
          ),
          ...unless(
            inbox.length === acked.length + WARM_UP,
            'durable',
            `the inbox has ${inbox.length} messages instead of ${acked.length + WARM_UP}`,
          ),
          ...unless(isFast, 'fast', `the 99th percentile of acknowledgements is ${p99Ms} ms; the limit is ${P99_MS_MAX} ms`),
          ...unless(seconds * 1000 < answerMs || answered > 0, 'slow', 'the model answered, but no turn has ended'),
        ],
      }
    } finally {
      await stage.close()
    }
  }

async function healthMs(url: string): Promise<number> {
  const startMs = performance.now()
  await (await fetch(`${url}/health`)).arrayBuffer()
  return performance.now() - startMs
}

/** The time that this share of the times does not exceed, rounded to 0.1 ms. */
function share(times: readonly number[], part: number): number {
  const sorted = times.toSorted((a, b) => a - b)
  return Math.round((sorted[Math.floor(sorted.length * part)] ?? Number.NaN) * 10) / 10
}
