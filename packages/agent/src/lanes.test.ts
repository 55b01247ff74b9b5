import { expect, test } from 'vitest'
import { Lanes } from './lanes.ts'
import { AWAY_MAX, type Slot } from './slots.ts'

interface Started {
  readonly name: string
  readonly followed: AbortSignal | undefined
  readonly end: () => void
}

function lanes(runningMax: number, waitingMax = 100) {
  const limits = { runningMax, waitingMax }
  const subject = new Lanes(() => limits)
  const started: Started[] = []
  const enter = (name: string, lane: string | null, options?: { unbounded?: boolean }) =>
    subject.enter(
      lane,
      (_, followed) => {
        const { promise, resolve } = Promise.withResolvers<void>()
        started.push({ name, followed, end: resolve })
        return promise
      },
      options,
    )
  const end = async (name: string) => {
    started.find((job) => job.name === name)?.end()
    await new Promise((resolve) => setImmediate(resolve))
  }
  const isFollowed = (name: string) => started.find((job) => job.name === name)?.followed?.aborted
  return { subject, limits, enter, end, isFollowed, names: () => started.map(({ name }) => name) }
}

test('jobs of one lane run one after another, in order', async () => {
  const { enter, end, names } = lanes(4)
  for (const name of ['a1', 'a2', 'a3']) enter(name, 'a')
  expect(names()).toEqual(['a1'])
  await end('a1')
  expect(names()).toEqual(['a1', 'a2'])
  await end('a2')
  expect(names()).toEqual(['a1', 'a2', 'a3'])
})

test('a job that never ends holds up its own lane only', async () => {
  const { enter, end, names } = lanes(2)
  enter('stuck', 'a')
  enter('behind', 'a')
  for (const name of ['b1', 'b2', 'b3']) enter(name, 'b')
  await end('b1')
  await end('b2')
  expect(names()).toEqual(['stuck', 'b1', 'b2', 'b3'])
})

test('no more jobs run at once than allowed, and who was ready first starts first', async () => {
  const { subject, enter, end, names } = lanes(2)
  for (const name of ['a', 'b', 'c', 'd']) enter(name, name)
  enter('own', null)
  enter('own too', null)
  expect(names()).toEqual(['a', 'b'])
  expect(subject.load).toEqual({ running: 2, queued: 4, sessions: 4 })
  await end('b')
  await end('a')
  expect(names()).toEqual(['a', 'b', 'c', 'd'])
  await end('c')
  await end('d')
  expect(names()).toEqual(['a', 'b', 'c', 'd', 'own', 'own too'])
})

test('a job is told as soon as another one waits behind it in its lane, in no other', async () => {
  const { enter, end, isFollowed } = lanes(2)
  enter('a1', 'a')
  enter('own', null)
  enter('b1', 'b')
  const behind = enter('b2', 'b')
  expect([isFollowed('a1'), isFollowed('own')]).toEqual([false, undefined])
  enter('a2', 'a')
  expect(isFollowed('a1')).toBe(true)
  await end('own')
  // It waited already when that one began
  expect(isFollowed('b1')).toBe(true)
  await end('a1')
  expect(isFollowed('a2')).toBe(false)
  behind.leave()
  await end('b1')
})

test('a busy lane cannot starve the others: its next job queues behind those that are ready', async () => {
  const { enter, end, names } = lanes(1)
  for (const name of ['a1', 'a2', 'a3']) enter(name, 'a')
  enter('b1', 'b')
  await end('a1')
  await end('b1')
  expect(names()).toEqual(['a1', 'b1', 'a2'])
})

test('a full queue refuses with unavailable and a time to come back; what can start at once is never refused', () => {
  const { enter, names } = lanes(1, 1)
  enter('a', null)
  enter('b', null)
  expect(() => enter('c', null)).toThrow(expect.objectContaining({ code: 'unavailable', retryAfterSecs: 5 }))
  enter('d', null, { unbounded: true })
  const none = lanes(1, 0)
  none.enter('a', 'a')
  expect(none.names()).toEqual(['a'])
  expect(() => none.enter('b', 'a')).toThrow(expect.objectContaining({ code: 'unavailable' }))
  expect(names()).toEqual(['a'])
})

test('a waiting job can leave, from its lane or from the ready ones, and makes room', async () => {
  const { subject, enter, end, names } = lanes(1, 3)
  const running = enter('a1', 'a')
  const behind = enter('a2', 'a')
  const ready = enter('b1', 'b')
  enter('b2', 'b')
  expect(ready.leave()).toBe(true)
  expect(ready.leave()).toBe(false)
  expect(behind.leave()).toBe(true)
  expect(running.leave()).toBe(false)
  expect(subject.load).toEqual({ running: 1, queued: 1, sessions: 2 })
  await end('a1')
  expect(names()).toEqual(['a1', 'b2'])
  await end('b2')
  expect(subject.load).toEqual({ running: 0, queued: 0, sessions: 0 })
})

test('a bound that is raised lets waiting jobs in before new ones', () => {
  const { limits, enter, names } = lanes(1)
  enter('a', null)
  enter('b', null)
  limits.runningMax = 2
  enter('c', null)
  expect(names()).toEqual(['a', 'b'])
})

test('entering and leaving take the same time however many wait', () => {
  const { enter } = lanes(1, 1_000_000)
  enter('first', 'a')
  const jobs = Array.from({ length: 100_000 }, () => enter('x', 'a'))
  const before = performance.now()
  for (const job of jobs) job.leave()
  expect(performance.now() - before).toBeLessThan(1000)
})

test('a job that leaves its slot lets another lane start, and holds its own until it ends', async () => {
  const subject = new Lanes(() => ({ runningMax: 1, waitingMax: 100 }))
  const started: string[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  subject.enter('a', (slot) => {
    started.push('a1')
    slot.leave()
    slot.leave()
    return promise
  })
  subject.enter('a', async () => started.push('a2'))
  expect(subject.load.running).toBe(0)
  subject.enter('b', () => new Promise(() => started.push('b1')))
  expect(started).toEqual(['a1', 'b1'])
  expect(subject.load.running).toBe(1)
  resolve()
  await new Promise((resume) => setImmediate(resume))
  expect(started).toEqual(['a1', 'b1'])
  expect(subject.load).toMatchObject({ running: 1, queued: 1 })
})

/** Lanes whose jobs do what a test tells them to. */
function slotted(runningMax: number) {
  const subject = new Lanes(() => ({ runningMax, waitingMax: 10_000 }))
  const jobs = new Map<string, { readonly slot: Slot; readonly end: () => void }>()
  const back: string[] = []
  const settle = () => new Promise((resolve) => setImmediate(resolve))
  return {
    subject,
    back,
    names: () => [...jobs.keys()],
    enter: (name: string, lane: string | null = null) => {
      subject.enter(lane, (slot) => {
        const { promise, resolve } = Promise.withResolvers<void>()
        jobs.set(name, { slot, end: resolve })
        return promise
      })
    },
    leave: (name: string) => jobs.get(name)?.slot.leave(),
    async retake(name: string) {
      void jobs
        .get(name)
        ?.slot.retake()
        .then(() => back.push(name))
      await settle()
    },
    async end(name: string) {
      jobs.get(name)?.end()
      await settle()
    },
  }
}

test('a job that is away counts as neither running nor queued, and its lane stays closed', async () => {
  const { subject, names, enter, leave, retake, end, back } = slotted(1)
  enter('a1', 'a')
  enter('a2', 'a')
  leave('a1')
  expect(names()).toEqual(['a1'])
  expect(subject.load).toEqual({ running: 0, queued: 1, sessions: 1 })
  await retake('a1')
  await retake('a1')
  expect(back).toEqual(['a1', 'a1'])
  expect(subject.load).toEqual({ running: 1, queued: 1, sessions: 1 })
  await end('a1')
  expect(names()).toEqual(['a1', 'a2'])
})

test('who comes back waits for a slot, and gets it before anybody new', async () => {
  const { subject, names, enter, leave, retake, end, back } = slotted(1)
  enter('a')
  leave('a')
  enter('b')
  leave('b')
  enter('c')
  await retake('b')
  await retake('a')
  enter('d')
  expect(back).toEqual([])
  expect(subject.load).toMatchObject({ running: 1, queued: 3 })
  await end('c')
  expect(back).toEqual(['b'])
  await end('b')
  expect(back).toEqual(['b', 'a'])
  expect(names()).toEqual(['a', 'b', 'c'])
  await end('a')
  expect(names()).toEqual(['a', 'b', 'c', 'd'])
  await end('d')
  expect(subject.load).toEqual({ running: 0, queued: 0, sessions: 0 })
})

test('a job that ends while it is away, or on its way back, leaves nothing behind', async () => {
  const { subject, names, enter, leave, retake, end } = slotted(1)
  for (const name of ['a', 'b', 'c']) {
    enter(name)
    if (name !== 'c') leave(name)
  }
  await retake('b')
  await end('a')
  await end('b')
  expect(subject.load).toEqual({ running: 1, queued: 0, sessions: 0 })
  enter('d')
  await end('c')
  expect(names()).toEqual(['a', 'b', 'c', 'd'])
  await end('d')
  expect(subject.load).toEqual({ running: 0, queued: 0, sessions: 0 })
})

test('beyond the bound a job keeps its slot while it waits', async () => {
  const { subject, enter, leave, retake, back } = slotted(1)
  for (let job = 0; job < AWAY_MAX; job++) {
    enter(`${job}`)
    leave(`${job}`)
  }
  enter('one more')
  leave('one more')
  expect(subject.load.running).toBe(1)
  await retake('one more')
  expect(back).toEqual(['one more'])
})
