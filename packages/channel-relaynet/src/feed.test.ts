/** Catching up with one relay. */
import { setImmediate } from 'node:timers/promises'
import { testHost } from '@sluice/testkit/host'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { describe, expect, test } from 'vitest'
import { Feed } from './feed.ts'
import type { Candidate, Intake } from './intake.ts'
import { Positions } from './positions.ts'
import type { Filter, RelayLink, Subscription } from './relay-link.ts'

const RELAY_MAX = 500
const END = Number.MAX_SAFE_INTEGER

interface Stored {
  readonly id: string
  readonly created_at: number
}

interface Setup {
  /** The times of the stored events. */
  readonly times: readonly number[]
  /** The most events of one answer. */
  readonly max?: number
  readonly text?: string
  /** The time of an event that comes live before the answer to each page. */
  readonly liveAt?: number
  /** The same, before the relay has sent all that it has stored for the subscription. */
  readonly earlyAt?: number
}

/** Lets a feed catch up with a relay, and returns what it has delivered. */
async function catchUp({ times, max = RELAY_MAX, text = '', liveAt, earlyAt }: Setup) {
  const stored = times.map((at, index): Stored => ({ id: `stored ${index}`, created_at: at }))
  const delivered: string[][] = []
  const waiting: number[] = []
  let [read, done] = [0, 0]
  let live: Subscription | undefined
  const answer = ({ since = 0, until = END, limit = max }: Filter) =>
    stored
      .filter((event) => event.created_at >= since && event.created_at <= until)
      .toSorted((a, b) => b.created_at - a.created_at)
      .slice(0, Math.min(limit, max))
  const link = {
    url: 'wss://relay.example',
    closed: new Promise(() => undefined),
    pause: () => undefined,
    resume: () => undefined,
    subscribe(filter: Filter, subscription: Subscription) {
      live = subscription
      if (earlyAt !== undefined) subscription.onEvent({ id: 'early', created_at: earlyAt })
      for (const event of answer(filter)) subscription.onEvent(event)
      subscription.onStored()
    },
    async stored(filter: Filter) {
      waiting.push(read - done)
      if (liveAt !== undefined) live?.onEvent({ id: `live ${waiting.length}`, created_at: liveAt })
      await setImmediate()
      return answer(filter)
    },
  }
  const intake = {
    async read({ id, created_at: createdAt }: Stored): Promise<Candidate> {
      read += 1
      await setImmediate()
      done += 1
      const inbound = { id, account: 'bot', sender: 'ada', to: { to: 'ada' }, text, sentAtMs: createdAt * 1000 }
      return { id, createdAt, event: id, inbounds: [inbound] }
    },
    async deliver(candidates: readonly Candidate[]) {
      delivered.push(candidates.map(({ id }) => id))
      return true
    },
  }
  const host = testHost({ keyValue: memoryKeyValue() })
  const positions = new Positions(host)
  positions.readSince = () => 0
  const feed = new Feed(link as unknown as RelayLink, intake as unknown as Intake, positions)
  const hooks = { onReady: () => undefined, onEvent: () => undefined }
  void feed.read('bot', host.clock, hooks).catch(() => undefined)
  await expect.poll(() => feed.isIdle).toBe(true)
  const ids = new Set(delivered.flat().filter((id) => id.startsWith('stored')))
  return { count: ids.size, batches: delivered.map(({ length }) => length), waiting }
}

const seconds = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

describe('pages', () => {
  test('are read to the end, although back-dated messages arrive meanwhile', async () => {
    expect((await catchUp({ times: seconds(1200), liveAt: 5 })).count).toBe(1200)
    expect((await catchUp({ times: seconds(1200), earlyAt: 5 })).count).toBe(1200)
  })

  test('of one second do not hide what came before it', async () => {
    const times = [...Array<number>(600).fill(1000), ...seconds(100)]
    // The relay never shows the last hundred of that second.
    expect((await catchUp({ times })).count).toBe(600)
    // This relay shows more than is asked for at once.
    expect((await catchUp({ times, max: 650 })).count).toBe(700)
  })

  test('are asked for when the events of the page before were handled', async () => {
    const { waiting } = await catchUp({ times: seconds(1200) })
    expect(Math.max(...waiting.slice(1))).toBe(0)
  })
})

test('long messages are delivered before they fill the memory', async () => {
  const { count, batches } = await catchUp({ times: seconds(400), text: 'a'.repeat(30_000) })
  expect(count).toBe(400)
  expect(Math.max(...batches) * 30_000).toBeLessThan(5_000_000)
})
