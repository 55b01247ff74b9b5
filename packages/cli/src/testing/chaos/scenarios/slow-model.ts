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
      // Offered at its rate, whatever becomes of the ones before.
      for (let count = 0; count < perSecond * seconds; count++) {
        await sleep(Math.max(0, startMs + (count * 1000) / perSecond - performance.now()))
        underWay.push(send())
      }
      const answers = await Promise.all(underWay)
      await life.end('SIGKILL')
      const acked = answers.filter(({ status }) => status === 200)
      const times = acked.map(({ tookMs }) => tookMs).toSorted((a, b) => a - b)
      const at = (share: number): number => Math.round((times[Math.floor(times.length * share)] ?? Number.NaN) * 10) / 10
      const { inbox, sessions } = await readStore(stage.dataDir)
      const answered = sessions.flat().length
      return {
        numbers: { acknowledged: acked.length, p50Ms: at(0.5), p99Ms: at(0.99), answered },
        violations: [
          ...unless(
            acked.length === answers.length,
            'taken',
            `${answers.length - acked.length} of ${answers.length} were not acknowledged`,
          ),
          ...unless(inbox.length === acked.length + WARM_UP, 'durable', `${inbox.length} are kept`),
          ...unless(at(0.99) < P99_MS_MAX, 'fast', `one in a hundred waited ${at(0.99)} ms or longer`),
          ...unless(seconds * 1000 < answerMs || answered > 0, 'slow', 'the model answered, and no turn has ended'),
        ],
      }
    } finally {
      await stage.close()
    }
  }
