/** A message that takes the daemon down whenever it runs: given up after five starts, and in nobody's way until then. */
import { setTimeout as sleep } from 'node:timers/promises'
import { listening, setStage } from '../stage.ts'
import { type Scenario, unless } from './scenario.ts'
import { bringMessages, kindOf } from './write-message.ts'

const STARTS_MAX = 5
/** Others have so long beside it. */
const DEADLY_AFTER_MS = 400
const START_MS_MAX = 10_000

export const poison: Scenario = async (options) => {
  /** The first message there is. */
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
    const [beside, behind]: [string[], string[]] = [[], []]
    for (let start = 1; start <= STARTS_MAX; start++) {
      const life = stage.begin()
      const url = await listening(life)
      if (start === 1) {
        await bringMessages(stage, url, kind, [ada])
        behind.push(...(await bringMessages(stage, url, kind, [ada])).map(({ mark }) => mark))
      }
      beside.push(...(await bringMessages(stage, url, kind, [bob])).map(({ mark }) => mark))
      await Promise.race([isRunning.promise, sleep(START_MS_MAX, undefined, { signal, ref: false })])
      await sleep(DEADLY_AFTER_MS)
      await life.end('SIGKILL')
      isRunning = Promise.withResolvers()
    }
    const delayed = beside.filter((mark) => !isAnswered(mark))
    await stage.calmLife(async () => {})
    const { store, violations } = await stage.outcome()
    const id = recorder.messages.get(poisonous ?? '')?.id
    const state = store.inbox.find((row) => row.id === id)?.state
    const starts = recorder.seen.filter((event) => event.type === 'asked' && event.mark === poisonous).length
    return {
      numbers: { starts, beside: beside.length },
      violations: [
        ...violations,
        ...unless(state === 'dead', 'poison', `the poisonous message is ${state}`),
        ...unless(starts === STARTS_MAX, 'poison', `it was started ${starts} times`),
        ...unless(delayed.length === 0, 'poison', `${delayed.join(' ')} of another session waited for it`),
        ...unless(behind.every(isAnswered), 'poison', 'what came behind it in its session was never answered'),
      ],
    }
  } finally {
    await stage.close()
  }
}
