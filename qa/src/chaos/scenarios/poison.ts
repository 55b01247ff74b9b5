/** A message that crashes the daemon in each attempt is dead after five attempts, and does not delay other sessions until then. */
import { setTimeout as sleep } from 'node:timers/promises'
import { listening, setStage } from '../stage.ts'
import { type Scenario, unless } from './scenario.ts'
import { deliverMessages, kindOf } from './write-message.ts'

const ATTEMPTS_MAX = 5
/** The longest wait for the reply to another session before the crash, and the time from that reply to the crash. */
const OTHER_MS_MAX = 5000
const CRASH_AFTER_MS = 100
const START_MS_MAX = 10_000

export const poison: Scenario = async (options) => {
  /** The mark of the first message. */
  let poisonous: string | undefined
  let isRunning = Promise.withResolvers<void>()
  const stage = await setStage({
    ...options,
    answer: async (mark) => {
      poisonous ??= mark
      if (mark !== poisonous) return
      isRunning.resolve()
      await new Promise(() => {})
    },
  })
  const { world, signal } = stage
  const { recorder } = world
  const kind = kindOf(world, 'chatapp')
  const [ada, bob = ada] = kind.senders
  const isAnswered = (mark: string): boolean =>
    recorder.seen.some((event) => event.type === 'sending' && event.parts.some((part) => part.mark === mark))
  try {
    const otherSession: string[] = []
    const sameSession: string[] = []
    for (let start = 1; start <= ATTEMPTS_MAX; start++) {
      const life = stage.begin()
      const url = await listening(life)
      if (start === 1) {
        await deliverMessages(stage, url, kind, [ada])
        sameSession.push(...(await deliverMessages(stage, url, kind, [ada])).map(({ mark }) => mark))
      }
      otherSession.push(...(await deliverMessages(stage, url, kind, [bob])).map(({ mark }) => mark))
      await Promise.race([isRunning.promise, sleep(START_MS_MAX, undefined, { signal, ref: false })])
      const endMs = performance.now() + OTHER_MS_MAX
      while (!otherSession.every(isAnswered) && performance.now() < endMs) await sleep(20, undefined, { signal })
      await sleep(CRASH_AFTER_MS)
      await life.end('SIGKILL')
      isRunning = Promise.withResolvers()
    }
    const delayed = otherSession.filter((mark) => !isAnswered(mark))
    await stage.calmLife(async () => {})
    const { store, violations } = await stage.outcome()
    const id = recorder.messages.get(poisonous ?? '')?.id
    const state = store.inbox.find((row) => row.id === id)?.state
    const starts = recorder.seen.filter((event) => event.type === 'asked' && event.mark === poisonous).length
    return {
      numbers: { starts, beside: otherSession.length },
      violations: [
        ...violations,
        ...unless(state === 'dead', 'poison', `the message that crashes the daemon is ${state} instead of dead`),
        ...unless(
          starts === ATTEMPTS_MAX,
          'poison',
          `the message that crashes the daemon was started ${starts} times instead of ${ATTEMPTS_MAX}`,
        ),
        ...unless(delayed.length === 0, 'poison', `another session had to wait: no reply to ${delayed.join(' ')} before the crash`),
        ...unless(sameSession.every(isAnswered), 'poison', 'the next message of its session was never answered'),
      ],
    }
  } finally {
    await stage.close()
  }
}
