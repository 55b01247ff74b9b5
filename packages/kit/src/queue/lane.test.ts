import { testClock } from '@sluice/testkit/clock'
import { createRandom } from '@sluice/testkit/random'
import { expect, test } from 'vitest'
import { LaneQueue } from './lane-queue.ts'

const settle = () => new Promise((resolve) => setImmediate(resolve))
const LANES = ['room', 'other room']
const WRITERS = ['ann', 'bob', 'eve', undefined]

test.each([1, 2, 3, 4, 5, 6])('keeps the order of each writer and starts every job where jobs step aside (seed %i)', async (seed) => {
  const random = createRandom(seed)
  const clock = testClock()
  const queue = new LaneQueue({ clock, permits: () => 3 })
  const running = new Set<string>()
  const ended: { readonly lane: string; readonly writer: string | undefined; readonly order: number }[] = []
  const left = new Set<number>()
  let isOver = false
  for (let order = 0; order < 300; order++) {
    const [lane, writer] = [random.pick(LANES), random.pick(WRITERS)]
    const queued = queue.enter({
      lane,
      writer,
      group: 'one',
      sharing: writer === undefined ? undefined : { owner: writer, share: () => 1 },
      async run({ permit }) {
        expect(running.has(lane)).toBe(false)
        running.add(lane)
        if (random.chance(0.3)) {
          permit.release()
          await clock.sleep(random.within(1, 50))
          await permit.reacquire()
        } else await clock.sleep(random.within(0, 50))
        running.delete(lane)
        if (!isOver && random.chance(0.3)) return { retryAtMs: clock.nowMs() + random.within(1, 200), stepsAside: true }
        ended.push({ lane, writer, order })
        return 'done'
      },
    })
    if (random.chance(0.1) && queued?.leave()) left.add(order)
    if (random.chance(0.5)) {
      await clock.advance(random.within(0, 40))
      await settle()
    }
  }
  isOver = true
  for (let step = 0; step < 1000 && ended.length < 300 - left.size; step++) {
    await clock.advance(50)
    await settle()
  }
  expect(queue.load).toEqual({ running: 0, waiting: 0, reacquiring: 0 })
  expect(ended).toHaveLength(300 - left.size)
  for (const lane of LANES) {
    expect(queue.startsAtOnce({ lane })).toBe(true)
    for (const writer of WRITERS) {
      // A job without a writer keeps its order with the jobs of all writers.
      const own = ended.filter((one) => one.lane === lane && (one.writer === writer || one.writer === undefined)).map(({ order }) => order)
      if (writer !== undefined || own.length > 0) expect(own).toEqual(own.toSorted((one, other) => one - other))
    }
  }
})
