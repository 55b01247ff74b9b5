import { testClock } from '@sluice/testkit/clock'
import { processorMs } from '@sluice/testkit/processor-time'
import { describe, expect, test } from 'vitest'
import { type Attempt, type JobOutcome, LaneQueue, type QueuedJob } from './lane-queue.ts'
import { RELEASED_PERMITS_MAX } from './semaphore.ts'

const DAY_MS = 24 * 3_600_000

interface EnterOptions {
  readonly group?: string
  readonly dueAtMs?: number
  readonly isInterrupted?: boolean
  readonly isPrior?: boolean
  readonly writer?: string
  /** The owner, whose share is that of the bench. */
  readonly owner?: string
}

/** A queue whose jobs end when a test ends them. */
function bench(permits = 2) {
  const passing = testClock()
  let setMs = 0
  const clock = { ...passing, nowMs: () => passing.nowMs() + setMs }
  const limits = { permits, others: Number.POSITIVE_INFINITY, share: 2 }
  const queue = new LaneQueue({ clock, permits: () => limits.permits, othersPermits: () => Math.min(limits.permits, limits.others) })
  const started: string[] = []
  /** Jobs that have their permit again. */
  const reacquired: string[] = []
  const attempts = new Map<string, { readonly attempt: Attempt; readonly outcome: PromiseWithResolvers<JobOutcome> }>()
  return {
    queue,
    clock,
    limits,
    started,
    reacquired,
    setClock: (ms: number) => {
      setMs = ms
    },
    enter(name: string, lane: string | null, { owner, ...options }: EnterOptions = {}): QueuedJob {
      const run = (attempt: Attempt): Promise<JobOutcome> => {
        started.push(name)
        const outcome = Promise.withResolvers<JobOutcome>()
        attempts.set(name, { attempt, outcome })
        return outcome.promise
      }
      const sharing = owner === undefined ? undefined : { owner, share: () => limits.share }
      const job = queue.enter({ lane, group: 'one', run, sharing, ...options })
      if (!job) throw new Error('the queue is stopped')
      return job
    },
    async end(name: string, outcome: JobOutcome | Error = 'done') {
      const running = attempts.get(name)?.outcome
      if (outcome instanceof Error) running?.reject(outcome)
      else running?.resolve(outcome)
      await settle()
    },
    release: (name: string) => attempts.get(name)?.attempt.permit.release(),
    async reacquire(name: string) {
      void attempts
        .get(name)
        ?.attempt.permit.reacquire()
        .then(() => reacquired.push(name))
      await settle()
    },
    isSuperseded: (name: string) => attempts.get(name)?.attempt.superseded?.aborted,
  }
}

const settle = () => new Promise((resolve) => setImmediate(resolve))

describe('LaneQueue', () => {
  describe('a job that is held', () => {
    test.each(['ready', 'behind', 'parked', 'sharing'] as const)(
      'while it is %s does not start, keeps its place, and starts when it resumes',
      async (state) => {
        const { enter, end, started, clock, limits } = bench(state === 'ready' ? 1 : 4)
        limits.share = 1
        enter('other', state === 'behind' ? 'a' : 'b', { owner: 'ann' })
        const held = enter('a1', 'a', {
          ...(state === 'parked' && { dueAtMs: clock.nowMs() + 100 }),
          ...(state === 'sharing' && { owner: 'ann' }),
        })
        enter('a2', 'a')
        expect([held.hold(), held.hold()]).toEqual([true, false])
        await end('other')
        await clock.advance(200)
        await settle()
        expect(started).toEqual(['other'])
        held.resume()
        held.resume()
        await settle()
        expect(started).toEqual(['other', 'a1'])
        expect(held.hold()).toBe(false)
        await end('a1')
        expect(started).toEqual(['other', 'a1', 'a2'])
      },
    )

    test('leaves its place and its share to the next one', async () => {
      const { enter, end, started, limits, queue } = bench(1)
      limits.share = 1
      enter('other', 'b')
      const held = enter('a1', 'a', { owner: 'ann' })
      enter('a2', 'a', { owner: 'ann' })
      expect(held.hold()).toBe(true)
      await end('other')
      expect([held.leave(), held.hold()]).toEqual([true, false])
      held.resume()
      await settle()
      expect(started).toEqual(['other', 'a2'])
      await end('a2')
      expect(queue.load).toEqual({ running: 0, waiting: 0, reacquiring: 0 })
      expect([...queue.used()]).toEqual([])
    })
  })

  describe('lanes', () => {
    test('run their jobs one after another, in order', async () => {
      const { enter, end, started } = bench(4)
      for (const name of ['a1', 'a2', 'a3']) enter(name, 'a')
      expect(started).toEqual(['a1'])
      await end('a1')
      expect(started).toEqual(['a1', 'a2'])
      await end('a2')
      expect(started).toEqual(['a1', 'a2', 'a3'])
    })

    test('are delayed only by their own jobs', async () => {
      const { enter, end, started } = bench(2)
      enter('stuck', 'a')
      enter('behind', 'a')
      for (const name of ['b1', 'b2', 'b3']) enter(name, 'b')
      await end('b1')
      await end('b2')
      expect(started).toEqual(['stuck', 'b1', 'b2', 'b3'])
    })

    test('are not delayed by a job that leaves them to run again later', async () => {
      const { queue, clock, enter, end, started } = bench(4)
      enter('a1', 'a')
      enter('a2', 'a')
      await end('a1', { retryAtMs: clock.nowMs() + 1000, leavesLane: true })
      expect(started).toEqual(['a1', 'a2'])
      enter('a3', 'a')
      await clock.advance(1000)
      expect(started).toEqual(['a1', 'a2', 'a1'])
      await end('a1', { retryAtMs: clock.nowMs() + 1000, leavesLane: true })
      await clock.advance(1000)
      await end('a1')
      expect(started).toEqual(['a1', 'a2', 'a1', 'a1'])
      await end('a2')
      expect(started).toEqual(['a1', 'a2', 'a1', 'a1', 'a3'])
      await end('a3')
      expect(queue.load).toEqual({ running: 0, waiting: 0, reacquiring: 0 })
      expect(queue.startsAtOnce({ lane: 'a' })).toBe(true)
    })

    test('are held only for the writer of a job that steps aside', async () => {
      const { queue, clock, enter, end, started, isSuperseded } = bench(4)
      for (const [name, writer] of Object.entries({ eve1: 'eve', ann1: 'ann', eve2: 'eve', ann2: 'ann', bob1: 'bob' }))
        enter(name, 'room', { writer })
      await end('eve1', { retryAtMs: clock.nowMs() + 1000, stepsAside: true })
      expect(started).toEqual(['eve1', 'ann1'])
      expect(isSuperseded('ann1')).toBe(true)
      await end('ann1')
      await end('ann2')
      expect(started).toEqual(['eve1', 'ann1', 'ann2', 'bob1'])
      enter('eve3', 'room', { writer: 'eve' })
      enter('bob2', 'room', { writer: 'bob' })
      await clock.advance(1000)
      expect(started).toHaveLength(4)
      // The held job is the oldest one, so that it comes before later ones.
      await end('bob1')
      expect(started.slice(4)).toEqual(['eve1'])
      expect(isSuperseded('eve1')).toBe(true)
      await end('eve1')
      await end('eve2')
      await end('eve3')
      await end('bob2')
      expect(started.slice(4)).toEqual(['eve1', 'eve2', 'eve3', 'bob2'])
      expect(queue.load).toEqual({ running: 0, waiting: 0, reacquiring: 0 })
      expect(queue.startsAtOnce({ lane: 'room' })).toBe(true)
    })

    test('run in parallel up to the bound and start in the order in which they became ready', async () => {
      const { queue, enter, end, started } = bench(2)
      for (const name of ['a', 'b', 'c', 'd']) enter(name, name)
      enter('own', null)
      enter('own too', null)
      enter('a2', 'a')
      expect(started).toEqual(['a', 'b'])
      expect(queue.load).toEqual({ running: 2, waiting: 5, reacquiring: 0 })
      await end('b')
      await end('a')
      expect(started).toEqual(['a', 'b', 'c', 'd'])
      for (const name of ['c', 'd', 'own', 'own too']) await end(name)
      expect(started).toEqual(['a', 'b', 'c', 'd', 'own', 'own too', 'a2'])
      await end('a2')
      expect(queue.load).toEqual({ running: 0, waiting: 0, reacquiring: 0 })
    })

    test('start their next job after the other ready lanes', async () => {
      const { enter, end, started } = bench(1)
      for (const name of ['a1', 'a2', 'a3']) enter(name, 'a')
      enter('b1', 'b')
      await end('a1')
      await end('b1')
      expect(started).toEqual(['a1', 'b1', 'a2'])
    })

    test('of the groups of a queue start in turn', async () => {
      const { enter, end, started } = bench(1)
      for (const name of ['a', 'b', 'c', 'd']) enter(name, name, { group: 'busy' })
      enter('x', 'x', { group: 'quiet' })
      enter('y', 'y', { group: 'quiet' })
      for (const name of ['a', 'b', 'x', 'c', 'y']) await end(name)
      expect(started).toEqual(['a', 'b', 'x', 'c', 'y', 'd'])
    })

    test('report how long the oldest ready job of a group has waited for a permit', async () => {
      const { queue, clock, enter, end } = bench(1)
      enter('running', 'a', { group: 'busy' })
      enter('behind', 'a', { group: 'busy' })
      enter('due later', 'b', { group: 'busy', dueAtMs: clock.nowMs() + DAY_MS })
      await clock.advance(1000)
      expect(queue.readyMs('busy')).toBe(0)
      enter('ready', 'c', { group: 'busy', isInterrupted: true })
      await clock.advance(1000)
      enter('ready too', 'd', { group: 'busy' })
      await clock.advance(1000)
      expect([queue.readyMs('busy'), queue.readyMs('quiet')]).toEqual([2000, 0])
      await end('running')
      expect(queue.readyMs('busy')).toBe(1000)
    })

    test('tell whether a job would start at once', async () => {
      const { queue, limits, enter } = bench(1)
      expect([queue.startsAtOnce({ lane: 'a' }), queue.startsAtOnce({ lane: null })]).toEqual([true, true])
      enter('a', 'a')
      expect(queue.startsAtOnce({ lane: null })).toBe(false)
      limits.permits = 2
      expect([queue.startsAtOnce({ lane: 'a' }), queue.startsAtOnce({ lane: 'b' })]).toEqual([false, true])
      enter('b', 'b')
      expect(queue.startsAtOnce({ lane: 'c' })).toBe(false)
    })

    test('that wait start before new ones when the bound is raised', () => {
      const { limits, enter, started } = bench(1)
      enter('a', null)
      enter('b', null)
      limits.permits = 2
      enter('c', null)
      expect(started).toEqual(['a', 'b'])
    })

    test('that wait start by wake when the bound is raised', () => {
      const { queue, limits, enter, started } = bench(1)
      enter('a', null)
      enter('b', null)
      limits.permits = 2
      expect(started).toEqual(['a'])
      queue.wake()
      expect(started).toEqual(['a', 'b'])
    })
  })

  describe('a job', () => {
    test('is superseded once another job waits in its lane, not in others', async () => {
      const { enter, end, isSuperseded } = bench(2)
      enter('a1', 'a')
      enter('own', null)
      enter('b1', 'b')
      const behind = enter('b2', 'b')
      expect([isSuperseded('a1'), isSuperseded('own')]).toEqual([false, undefined])
      enter('a2', 'a')
      expect(isSuperseded('a1')).toBe(true)
      await end('own')
      // The other job waited already when this one started.
      expect(isSuperseded('b1')).toBe(true)
      await end('a1')
      expect(isSuperseded('a2')).toBe(false)
      behind.leave()
      await end('b1')
    })

    test('is superseded only by jobs of its writer, where several people share its lane', async () => {
      const { enter, end, isSuperseded } = bench(2)
      enter('ann', 'a', { writer: 'ann' })
      const behind = enter('bob', 'a', { writer: 'bob' })
      expect(isSuperseded('ann')).toBe(false)
      const again = enter('ann again', 'a', { writer: 'ann' })
      expect(isSuperseded('ann')).toBe(true)
      again.leave()
      behind.leave()
      enter('bob later', 'a', { writer: 'bob' })
      enter('of the API', 'a')
      await end('ann')
      // A job without a writer may be of every one.
      expect(isSuperseded('bob later')).toBe(true)
      await end('bob later')
      expect(isSuperseded('of the API')).toBe(false)
      enter('ann at last', 'a', { writer: 'ann' })
      expect(isSuperseded('of the API')).toBe(true)
    })

    test('that waits can be removed from its lane, the ready jobs or its delay', async () => {
      const { queue, clock, enter, end, started } = bench(1)
      const running = enter('a1', 'a')
      const behind = enter('a2', 'a')
      const ready = enter('b1', 'b')
      enter('b2', 'b')
      const parked = enter('c1', 'c', { dueAtMs: clock.nowMs() + 1000 })
      enter('c2', 'c')
      expect([ready.leave(), ready.leave(), behind.leave(), parked.leave(), running.leave()]).toEqual([true, false, true, true, false])
      expect(queue.load).toEqual({ running: 1, waiting: 2, reacquiring: 0 })
      await end('a1')
      await end('b2')
      await end('c2')
      expect(started).toEqual(['a1', 'b2', 'c2'])
      expect(queue.load).toEqual({ running: 0, waiting: 0, reacquiring: 0 })
      expect(clock.sleeping).toBe(0)
    })

    test('that rejects counts as ended', async () => {
      const { enter, end, started } = bench()
      enter('a1', 'a')
      enter('a2', 'a')
      await end('a1', new Error('the disk is full'))
      expect(started).toEqual(['a1', 'a2'])
    })

    test('that is retried delays its own lane until its time, and no other', async () => {
      const { started, clock, enter, end } = bench(1)
      enter('a1', 'a')
      enter('a2', 'a')
      enter('b', 'b')
      await end('a1', { retryAtMs: clock.nowMs() + 5000 })
      await end('b')
      expect(started).toEqual(['a1', 'b'])
      await clock.advance(4999)
      expect(started).toEqual(['a1', 'b'])
      await clock.advance(1)
      expect(started).toEqual(['a1', 'b', 'a1'])
      await end('a1')
      expect(started).toEqual(['a1', 'b', 'a1', 'a2'])
    })

    test('that is not due waits', async () => {
      const { started, clock, enter } = bench()
      enter('a', 'a', { dueAtMs: clock.nowMs() + 1000 })
      expect(started).toEqual([])
      await clock.advance(1000)
      expect(started).toEqual(['a'])
    })

    test('with a due time beyond the longest delay starts at once', () => {
      const { started, clock, enter } = bench()
      enter('a', 'a', { dueAtMs: clock.nowMs() + 2 * DAY_MS })
      expect(started).toEqual(['a'])
    })

    test('starts within a minute after the clock is set to its due time', async () => {
      const { started, clock, setClock, enter } = bench()
      enter('a', 'a', { dueAtMs: clock.nowMs() + DAY_MS })
      setClock(DAY_MS)
      expect(started).toEqual([])
      await clock.advance(60_000)
      expect(started).toEqual(['a'])
    })

    test('starts on time although the clock was set back', async () => {
      const { started, clock, setClock, enter } = bench()
      enter('a', 'a', { dueAtMs: clock.nowMs() + 90_000 })
      setClock(-DAY_MS)
      await clock.advance(89_999)
      expect(started).toEqual([])
      await clock.advance(1)
      expect(started).toEqual(['a'])
    })

    test('whose attempts were interrupted runs one at a time, next to other jobs', async () => {
      const { started, enter, end } = bench(3)
      for (const name of ['1', '2', '3']) enter(name, `lane ${name}`, { isInterrupted: true })
      for (const name of ['4', '5', '6']) enter(name, `lane ${name}`)
      expect(started).toEqual(['1', '4', '5'])
      await end('1')
      expect(started).toEqual(['1', '4', '5', '2'])
      await end('4')
      expect(started).toEqual(['1', '4', '5', '2', '6'])
      await end('2')
      expect(started).toEqual(['1', '4', '5', '2', '6', '3'])
    })
  })

  describe('a released permit', () => {
    test('lets other lanes start, while the lane of its job stays closed', async () => {
      const { queue, started, enter, end, release } = bench(1)
      enter('a1', 'a')
      enter('a2', 'a')
      release('a1')
      release('a1')
      expect(queue.load).toEqual({ running: 0, waiting: 1, reacquiring: 0 })
      enter('b', 'b')
      expect(started).toEqual(['a1', 'b'])
      expect(queue.load).toEqual({ running: 1, waiting: 1, reacquiring: 0 })
      await end('b')
      expect(started).toEqual(['a1', 'b'])
      await end('a1')
      expect(started).toEqual(['a1', 'b', 'a2'])
    })

    test('may be released while the job starts', async () => {
      const { queue, started, enter, end } = bench(1)
      enter('a', 'a')
      for (const name of ['b1', 'b2'])
        queue.enter({
          lane: name,
          group: 'one',
          run: async ({ permit }) => {
            started.push(name)
            permit.release()
            return 'done'
          },
        })
      await end('a')
      expect(started).toEqual(['a', 'b1', 'b2'])
      expect(queue.load).toEqual({ running: 0, waiting: 0, reacquiring: 0 })
    })

    test('is returned at once when there is room', async () => {
      const { queue, enter, release, reacquire, end, started, reacquired } = bench(1)
      enter('a1', 'a')
      enter('a2', 'a')
      release('a1')
      await reacquire('a1')
      await reacquire('a1')
      expect(reacquired).toEqual(['a1', 'a1'])
      expect(queue.load).toEqual({ running: 1, waiting: 1, reacquiring: 0 })
      await end('a1')
      expect(started).toEqual(['a1', 'a2'])
    })

    test('is returned in the order of the requests, before new jobs start', async () => {
      const { queue, started, enter, release, reacquire, end, reacquired } = bench(1)
      for (const name of ['a', 'b']) {
        enter(name, null)
        release(name)
      }
      enter('c', null)
      await reacquire('b')
      await reacquire('a')
      enter('d', null)
      expect(reacquired).toEqual([])
      expect(queue.load).toEqual({ running: 1, waiting: 1, reacquiring: 2 })
      await end('c')
      expect(reacquired).toEqual(['b'])
      await end('b')
      expect(reacquired).toEqual(['b', 'a'])
      expect(started).toEqual(['a', 'b', 'c'])
      await end('a')
      expect(started).toEqual(['a', 'b', 'c', 'd'])
      await end('d')
      expect(queue.load).toEqual({ running: 0, waiting: 0, reacquiring: 0 })
    })

    test('of a job that ends meanwhile is not returned', async () => {
      const { queue, started, reacquired, enter, release, reacquire, end } = bench(1)
      for (const name of ['a', 'b', 'c']) {
        enter(name, null)
        if (name !== 'c') release(name)
      }
      await reacquire('b')
      await end('a')
      await end('b')
      expect(reacquired).toEqual(['b'])
      expect(queue.load).toEqual({ running: 1, waiting: 0, reacquiring: 0 })
      enter('d', null)
      enter('e', null)
      await end('c')
      expect(started).toEqual(['a', 'b', 'c', 'd'])
      expect(queue.load).toEqual({ running: 1, waiting: 1, reacquiring: 0 })
    })

    test('can be released again while its job waits for it', async () => {
      const { started, reacquired, enter, end, release, reacquire } = bench(1)
      for (const name of ['a', 'b', 'c']) enter(name, name)
      release('a')
      await reacquire('a')
      release('a')
      expect(started).toEqual(['a', 'b'])
      await end('b')
      expect(started).toEqual(['a', 'b', 'c'])
      reacquired.length = 0
      await reacquire('a')
      expect(reacquired).toEqual([])
      await end('c')
      expect(reacquired).toEqual(['a'])
    })

    test('of an interrupted job is returned when no other interrupted job runs', async () => {
      const { started, reacquired, enter, end, release, reacquire } = bench(3)
      enter('1', 'a', { isInterrupted: true })
      enter('2', 'b', { isInterrupted: true })
      release('1')
      expect(started).toEqual(['1', '2'])
      await reacquire('1')
      enter('3', 'c', { isInterrupted: true })
      enter('4', 'd')
      expect(reacquired).toEqual([])
      expect(started).toEqual(['1', '2', '4'])
      await end('2')
      expect(reacquired).toEqual(['1'])
      expect(started).toEqual(['1', '2', '4'])
      await end('1')
      expect(started).toEqual(['1', '2', '4', '3'])
    })

    test(`is kept by its job once ${RELEASED_PERMITS_MAX} others are released`, async () => {
      const { queue, enter, release, reacquire, reacquired } = bench(1)
      for (let job = 0; job < RELEASED_PERMITS_MAX; job++) {
        enter(`${job}`, null)
        release(`${job}`)
      }
      enter('one more', null)
      release('one more')
      expect(queue.load.running).toBe(1)
      await reacquire('one more')
      expect(reacquired).toEqual(['one more'])
    })
  })

  describe('a stop', () => {
    test('starts and accepts no more jobs and waits for the running ones', async () => {
      const { queue, clock, started, enter, end } = bench(1)
      enter('a', 'a')
      enter('b', 'b')
      enter('later', 'c', { dueAtMs: clock.nowMs() + 1000 })
      let isStopped = false
      const stopping = queue.stop().then(() => {
        isStopped = true
      })
      await settle()
      expect(isStopped).toBe(false)
      expect(() => enter('c', 'c')).toThrow('the queue is stopped')
      await end('a', { retryAtMs: 0 })
      await stopping
      expect(started).toEqual(['a'])
      expect(clock.sleeping).toBe(0)
    })

    test('returns a released permit at once and waits for its job', async () => {
      const { queue, started, reacquired, enter, end, release, reacquire } = bench(1)
      enter('a', 'a')
      release('a')
      enter('b', 'b')
      enter('c', 'c')
      await reacquire('a')
      let isStopped = false
      const stopping = queue.stop().then(() => {
        isStopped = true
      })
      await settle()
      expect(reacquired).toEqual(['a'])
      await end('b')
      expect(isStopped).toBe(false)
      await end('a')
      await stopping
      expect(started).toEqual(['a', 'b'])
    })
  })

  describe('the share of an owner', () => {
    test('holds up only this owner in a lane of several writers', async () => {
      const { limits, enter, end, started } = bench(4)
      limits.share = 1
      enter('eve elsewhere', 'eve', { owner: 'eve', writer: 'eve' })
      for (const name of ['eve1', 'ann1', 'eve2', 'ann2']) {
        const writer = name.slice(0, 3)
        enter(name, 'room', { owner: writer, writer })
      }
      expect(started).toEqual(['eve elsewhere', 'ann1'])
      // The turn of another person runs in the room, so that the part of the share goes to the next job of its owner.
      enter('eve third', 'third', { owner: 'eve', writer: 'eve' })
      await end('eve elsewhere')
      expect(started).toEqual(['eve elsewhere', 'ann1', 'eve third'])
      await end('ann1')
      expect(started).toEqual(['eve elsewhere', 'ann1', 'eve third', 'ann2'])
      await end('ann2')
      await end('eve third')
      await end('eve1')
      expect(started.slice(4)).toEqual(['eve1', 'eve2'])
    })

    test('bounds its jobs that run, in order, while others start', async () => {
      const { enter, end, started, queue, limits } = bench(8)
      for (const name of ['a1', 'a2', 'a3', 'a4']) enter(name, name, { owner: 'ann' })
      enter('b1', 'b1', { owner: 'bob' })
      enter('c1', 'c1')
      expect(started).toEqual(['a1', 'a2', 'b1', 'c1'])
      expect(queue.load).toEqual({ running: 4, waiting: 2, reacquiring: 0 })
      expect([...queue.used()]).toEqual([
        ['ann', 2],
        ['bob', 1],
      ])
      await end('a2')
      expect(started.at(-1)).toBe('a3')
      limits.share = 3
      queue.wake()
      expect(started.at(-1)).toBe('a4')
    })

    test('holds for jobs of one lane, for retries and for jobs that leave', async () => {
      const { enter, end, started, queue, limits } = bench(8)
      limits.share = 1
      const sharing = { owner: 'ann', share: () => limits.share }
      enter('a1', 'a', { owner: 'ann' })
      enter('a2', 'a', { owner: 'ann' })
      const leaving = enter('b1', 'b', { owner: 'ann' })
      enter('c1', 'c', { owner: 'ann' })
      expect(queue.startsAtOnce({ lane: 'd', sharing })).toBe(false)
      expect(queue.startsAtOnce({ lane: 'd', sharing: { owner: 'bob', share: () => 1 } })).toBe(true)
      expect(leaving.leave()).toBe(true)
      await end('a1', { retryAtMs: 0 })
      expect(started).toEqual(['a1', 'c1'])
      await end('c1')
      expect(started).toEqual(['a1', 'c1', 'a1'])
      await end('a1')
      await end('a2')
      expect(started).toEqual(['a1', 'c1', 'a1', 'a2'])
      expect(queue.load).toEqual({ running: 0, waiting: 0, reacquiring: 0 })
      expect(queue.startsAtOnce({ lane: 'd', sharing })).toBe(true)
    })

    test('frees the place of a job that leaves while it waits for a permit', async () => {
      const { enter, end, started } = bench(1)
      enter('first', 'first')
      const leaving = ['a1', 'a2'].map((name) => enter(name, name, { owner: 'ann' }))
      enter('a3', 'a3', { owner: 'ann' })
      for (const job of leaving) job.leave()
      await end('first')
      expect(started).toEqual(['first', 'a3'])
    })

    test('is given back by a job that waits for a person, and bounds how many continue', async () => {
      const { enter, end, release, reacquire, reacquired, started, queue } = bench(8)
      for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) enter(name, name, { owner: 'ann' })
      for (const name of ['a1', 'a2', 'a3', 'a4']) release(name)
      expect(started).toEqual(['a1', 'a2', 'a3', 'a4', 'a5'])
      for (const name of ['a1', 'a2', 'a3']) await reacquire(name)
      expect(reacquired).toEqual(['a1'])
      expect(queue.load).toEqual({ running: 2, waiting: 0, reacquiring: 2 })
      enter('a6', 'a6', { owner: 'ann' })
      await end('a1')
      expect(reacquired).toEqual(['a1', 'a2'])
      await end('a5')
      expect(reacquired).toEqual(['a1', 'a2', 'a3'])
      expect(started).not.toContain('a6')
      for (const name of ['a2', 'a3', 'a4']) await end(name)
      expect(started.at(-1)).toBe('a6')
      expect(queue.load).toEqual({ running: 1, waiting: 0, reacquiring: 0 })
    })

    test('lets a job end, or release its permit again, while it waits for the share', async () => {
      const { enter, end, release, reacquire, reacquired, queue } = bench(8)
      for (const name of ['a1', 'a2', 'a3', 'a4']) {
        enter(name, name, { owner: 'ann' })
        if (name < 'a3') release(name)
      }
      for (const name of ['a1', 'a2']) await reacquire(name)
      expect(queue.load.reacquiring).toBe(2)
      await end('a1')
      release('a2')
      expect(queue.load).toEqual({ running: 2, waiting: 0, reacquiring: 0 })
      await end('a3')
      await reacquire('a2')
      expect(reacquired).toContain('a2')
      expect(queue.load.running).toBe(2)
    })

    test('does not keep a queue from stopping', async () => {
      const { enter, end, release, reacquire, queue, reacquired } = bench(8)
      for (const name of ['a1', 'a2', 'a3', 'a4']) {
        enter(name, name, { owner: 'ann' })
        if (name === 'a1') release(name)
      }
      await reacquire('a1')
      expect(reacquired).toEqual([])
      const stopped = queue.stop()
      await settle()
      expect(reacquired).toEqual(['a1'])
      for (const name of ['a1', 'a2', 'a3']) await end(name)
      await stopped
    })

    test('keeps its waiting jobs out of the time that a group has been ready', async () => {
      const { enter, queue, clock } = bench(8)
      for (const name of ['a1', 'a2', 'a3']) enter(name, name, { owner: 'ann' })
      await clock.advance(1000)
      expect(queue.readyMs('one')).toBe(0)
    })
  })

  describe('prior jobs', () => {
    test('start first, also when the other jobs became ready before', async () => {
      const { enter, end, started } = bench(1)
      enter('first', 'first')
      enter('usual', 'usual')
      enter('prior', 'prior', { isPrior: true, group: 'two' })
      await end('first')
      await end('prior')
      expect(started).toEqual(['first', 'prior', 'usual'])
    })

    test('find a permit that the others leave free', async () => {
      const { enter, end, limits, started } = bench(2)
      limits.others = 1
      enter('a', 'a')
      enter('b', 'b')
      expect(started).toEqual(['a'])
      enter('p1', 'p1', { isPrior: true })
      enter('p2', 'p2', { isPrior: true })
      expect(started).toEqual(['a', 'p1'])
      await end('a')
      expect(started).toEqual(['a', 'p1', 'p2'])
      await end('p1')
      expect(started).toEqual(['a', 'p1', 'p2', 'b'])
    })

    test('have one permit beyond the bound when the only one is held by another job', async () => {
      const { enter, end, started, release, reacquire, reacquired } = bench(1)
      enter('a', 'a')
      enter('p1', 'p1', { isPrior: true })
      enter('p2', 'p2', { isPrior: true })
      expect(started).toEqual(['a', 'p1'])
      release('p1')
      expect(started).toEqual(['a', 'p1', 'p2'])
      await reacquire('p1')
      expect(reacquired).toEqual([])
      await end('p2')
      expect(reacquired).toEqual(['p1'])
    })
  })

  describe('the time', () => {
    test('to remove a job does not depend on the number of jobs', () => {
      const { enter } = bench(1)
      enter('first', 'a')
      const jobs = Array.from({ length: 100_000 }, () => enter('x', 'a'))
      const before = processorMs()
      for (const job of jobs) job.leave()
      expect(processorMs() - before).toBeLessThan(1000)
    })

    test.each([
      ['one lane', () => 'one'],
      ['one lane each', (number: number) => `${number}`],
    ])('of 10,000 jobs in %s is linear', async (_, laneOf) => {
      const order: number[] = []
      const queue = new LaneQueue({ clock: testClock(), permits: () => 8 })
      const run = async (number: number): Promise<JobOutcome> => {
        order.push(number)
        return 'done'
      }
      for (let number = 0; number < 10_000; number++) queue.enter({ lane: laneOf(number), group: `${number % 3}`, run: () => run(number) })
      for (let tick = 0; tick < 20_000 && order.length < 10_000; tick++) await settle()
      expect(order.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 10_000 }, (_, index) => index))
      expect(queue.load).toEqual({ running: 0, waiting: 0, reacquiring: 0 })
    })
  })
})
