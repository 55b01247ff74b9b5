/** Delivers more messages than may wait: the next one gets 503, and runs once after its retry. */
import { post } from '../request.ts'
import { setStage } from '../stage.ts'
import { type Scenario, unless } from './scenario.ts'
import { kindOf, writeMessage } from './write-message.ts'

const PENDING_MAX = 5

export const fullInbox: Scenario = async (options) => {
  const released = Promise.withResolvers<void>()
  const stage = await setStage({ ...options, answer: () => released.promise, pendingMax: PENDING_MAX })
  const { world } = stage
  const kind = kindOf(world, 'chatapp')
  const messages = Array.from({ length: PENDING_MAX + 1 }, (_, index) => writeMessage(world, kind, `1555000000${index}`))
  try {
    const first: (number | undefined)[] = []
    let retryAfter: string | null = null
    await stage.calmLife(async (url) => {
      const deliver = async (message: (typeof messages)[number]): Promise<number | undefined> => {
        world.recorder.see({ type: 'posted', marks: [message.mark] })
        const posted = await post(url, kind.request([message]))
        if (posted.status === 200) world.recorder.see({ type: 'acked', marks: [message.mark] })
        retryAfter ??= posted.retryAfter
        return posted.status
      }
      for (const message of messages) first.push(await deliver(message))
      released.resolve()
      const refused = messages.at(-1)
      while (refused && (await deliver(refused)) !== 200) await new Promise((resume) => setTimeout(resume, 50))
    })
    const { history, store, violations } = await stage.outcome()
    const asked = history.seen.filter((event) => event.type === 'asked' && event.mark === messages.at(-1)?.mark).length
    const expected = [...Array(PENDING_MAX).fill(200), 503]
    return {
      numbers: { retryAfterSecs: Number(retryAfter), rows: store.inbox.length },
      violations: [
        ...violations,
        ...unless(first.join() === expected.join(), 'full', `the statuses were ${first.join(' ')} instead of ${expected.join(' ')}`),
        ...unless(Number(retryAfter) > 0, 'full', `the 503 has Retry-After: ${retryAfter}`),
        ...unless(asked === 1, 'full', `the refused message ran ${asked} times instead of once`),
      ],
    }
  } finally {
    await stage.close()
  }
}
