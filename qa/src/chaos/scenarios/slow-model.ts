/** A model that takes its time: messages are acknowledged as fast as ever. */
import { setTimeout as sleep } from 'node:timers/promises'
import { post } from '../post.ts'
import { readStore } from '../read-store.ts'
import { listening, setStage } from '../stage.ts'
import { type Scenario, unless } from './scenario.ts'
import { kindOf, writeMessage } from './write-message.ts'

export interface SlowModelOptions {
  readonly perSecond: number
  readonly seconds: number
  /** Infinity: never. */
  readonly answerMs: number
}

const P99_MS_MAX = 50
/** A machine with other work delays all there is: so much longer than an answer with nothing behind it may an acknowledgement take. */
const NOISE = 2
/** The first ones pay for what is loaded at first use. */
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
      const underWay: ReturnType<typeof send>[] = []
      const beside: Promise<number>[] = []
      // Offered at its rate, whatever becomes of the ones before.
      for (let count = 0; count < perSecond * seconds; count++) {
        await sleep(Math.max(0, startMs + (count * 1000) / perSecond - performance.now()))
        underWay.push(send())
        beside.push(healthMs(url))
      }
      const answers = await Promise.all(underWay)
      const acked = answers.filter(({ status }) => status === 200)
      const times = acked.map(({ tookMs }) => tookMs)
      const [p50Ms, p99Ms, healthP99Ms] = [share(times, 0.5), share(times, 0.99), share(await Promise.all(beside), 0.99)]
      await life.end('SIGKILL')
      const { inbox, sessions } = await readStore(stage.dataDir)
      const answered = sessions.flat().length
      const isFast = p99Ms < P99_MS_MAX || p99Ms < NOISE * healthP99Ms
      return {
        numbers: { acknowledged: acked.length, p50Ms, p99Ms, healthP99Ms, answered },
        violations: [
          ...unless(
            acked.length === answers.length,
            'taken',
            `${answers.length - acked.length} of ${answers.length} were not acknowledged`,
          ),
          ...unless(inbox.length === acked.length + WARM_UP, 'durable', `${inbox.length} are kept`),
          ...unless(isFast, 'fast', `one in a hundred waited ${p99Ms} ms or longer`),
          ...unless(seconds * 1000 < answerMs || answered > 0, 'slow', 'the model answered, and no turn has ended'),
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

/** The time that this share of them does not exceed, to a tenth of a millisecond. */
function share(times: readonly number[], part: number): number {
  const sorted = times.toSorted((a, b) => a - b)
  return Math.round((sorted[Math.floor(sorted.length * part)] ?? Number.NaN) * 10) / 10
}
