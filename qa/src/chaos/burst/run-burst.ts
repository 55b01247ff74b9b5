/** A burst of messages on one channel while the daemon is killed again and again, and the checks of what became of them. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Violation } from '../history.ts'
import { meaningOfAcknowledged, OrderedTraffic } from '../ordered-traffic.ts'
import { quiet } from '../quiet.ts'
import { pause } from '../request.ts'
import { listening, type RunOptions, setStage } from '../stage.ts'
import { type BurstRow, checkBurst } from './check-burst.ts'

export interface BurstOptions extends RunOptions {
  readonly channel: string
  readonly messages: number
  readonly kills: number
}

export interface BurstResult extends BurstRow {
  /** What counts as acknowledged on this channel. */
  readonly means: string
  readonly kills: number
  /** Turns that a kill interrupted and that ran again. */
  readonly turnsCut: number
  readonly seconds: number
}

const MODEL_MS_MAX = 20
const ATTEMPTS_MAX = 100
/** A life ends at a random time after it has done its share of the work, or after the longest time. */
const REST_MS_MAX = 200
const LIFE_MS_MAX = 8000
const POLL_MS = 100
const READY_MS_MAX = 30_000
/** With no progress for this long, a run ends. */
const STALLED_MS = 150_000
const SETTLE_MS_MAX = 60_000

export async function runBurst({ channel, messages, kills, ...options }: BurstOptions): Promise<{
  readonly row: BurstResult
  readonly violations: readonly Violation[]
}> {
  const startMs = performance.now()
  const modelMs = (): number => stage.random.within(0, MODEL_MS_MAX)
  const stage = await setStage({
    ...options,
    attemptsMax: ATTEMPTS_MAX,
    pendingMax: 2 * messages + 100,
    kinds: { only: [channel] },
    answer: () => sleep(modelMs()),
  })
  const { world, random, signal } = stage
  const [kind] = world.kinds
  const { recorder } = world
  const ended = new AbortController()
  const traffic = new OrderedTraffic(recorder, AbortSignal.any([signal, ended.signal]))
  let current: string | undefined
  const url = (): string | undefined => current
  try {
    // The platform delivers nothing that was written before the first connection.
    const first = stage.begin()
    current = await listening(first)
    for (const endMs = performance.now() + READY_MS_MAX; kind.isReady?.() === false && performance.now() < endMs; )
      await pause(POLL_MS, signal)
    for (let number = 0; number < messages; number++) traffic.write(kind, { phase: 'burst', number, url })
    await life(first, 1)
    for (let kill = 1; kill < kills; kill++) {
      const next = stage.begin()
      current = await listening(next)
      await life(next, kill + 1)
    }
    const last = stage.begin()
    current = await listening(last)
    await finish()
    await quiet(current, SETTLE_MS_MAX, signal)
    await last.end('SIGTERM')
    signal.throwIfAborted()

    const { history, store, violations } = await stage.outcome()
    const checked = checkBurst({ channel, history, store, written: traffic.written, acknowledged: traffic.acknowledged })
    const begun = history.seen.filter((event) => event.type === 'asked')
    const turnsCut = begun.length - new Set(begun.map(({ mark }) => mark)).size
    const seconds = Math.round((performance.now() - startMs) / 1000)
    const row = { ...checked.row, means: meaningOfAcknowledged(kind), kills: recorder.kills, turnsCut, seconds }
    return { row, violations: [...checked.violations, ...violations] }
  } finally {
    ended.abort()
    await stage.close()
  }

  /** Lets a daemon do its share of the work and kills it. */
  async function life(daemon: ReturnType<typeof stage.begin>, number: number): Promise<void> {
    const share = Math.floor((number * messages) / (kills + 1))
    for (const endMs = performance.now() + LIFE_MS_MAX; askedCount() < share && performance.now() < endMs; )
      await pause(POLL_MS / 4, signal)
    await pause(random.within(0, REST_MS_MAX), signal)
    current = undefined
    await daemon.end('SIGKILL')
  }

  function askedCount(): number {
    return traffic.written.filter(({ message: { mark } }) => recorder.isAsked(mark)).length
  }

  /** Resolves once all messages have reached the model, or nothing has happened for a long time. */
  async function finish(): Promise<void> {
    let [left, sinceMs] = [messages, performance.now()]
    while (left > 0 && performance.now() - sinceMs < STALLED_MS && !signal.aborted) {
      await pause(POLL_MS, signal)
      const now = messages - askedCount()
      if (now < left) sinceMs = performance.now()
      left = now
    }
  }
}
