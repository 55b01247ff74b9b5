import { describe, expect, test } from 'vitest'
import { type OwnedPermit, Semaphore } from './semaphore.ts'

function bench(max: number) {
  const limits = { max }
  let freed = 0
  const semaphore = new Semaphore(
    () => limits.max,
    () => {
      freed++
      semaphore.readmit()
    },
  )
  return { semaphore, limits, freed: () => freed }
}

/** Whether the permit is held again within a few ticks. */
async function isHeldSoon(permit: OwnedPermit): Promise<boolean> {
  await new Promise((resolve) => setImmediate(resolve))
  return permit.state === 'held'
}

describe('Semaphore', () => {
  test('gives at most as many permits as its bound, which may change', () => {
    const { semaphore, limits } = bench(1)
    const first = semaphore.acquire()
    expect(semaphore.hasFree()).toBe(false)
    limits.max = 2
    expect(semaphore.hasFree()).toBe(true)
    limits.max = 1
    first.end()
    expect(semaphore.hasFree()).toBe(true)
    expect(semaphore.load).toMatchObject({ held: 0, released: 0, reacquiring: 0 })
  })

  test('calls back when a permit is released or its job ends, once each', () => {
    const { semaphore, freed } = bench(1)
    const permit = semaphore.acquire()
    permit.release()
    permit.release()
    expect(freed()).toBe(1)
    permit.end()
    permit.end()
    expect(freed()).toBe(2)
  })

  test('gives permits back in the order of the requests', async () => {
    const { semaphore } = bench(1)
    const first = semaphore.acquire()
    first.release()
    const other = semaphore.acquire()
    other.release()
    const running = semaphore.acquire()
    void other.reacquire()
    void first.reacquire()
    running.end()
    expect([await isHeldSoon(other), await isHeldSoon(first)]).toEqual([true, false])
    other.end()
    expect(await isHeldSoon(first)).toBe(true)
  })

  test('gives at most one exclusive permit, next to others', async () => {
    const { semaphore } = bench(3)
    const first = semaphore.acquire({ isExclusive: true })
    expect([semaphore.hasFree({ isExclusive: true }), semaphore.hasFree()]).toEqual([false, true])
    first.release()
    const second = semaphore.acquire({ isExclusive: true })
    void first.reacquire()
    expect(await isHeldSoon(first)).toBe(false)
    second.end()
    expect(await isHeldSoon(first)).toBe(true)
  })

  test('resolves reacquire when the job ends first', async () => {
    const { semaphore } = bench(1)
    const permit = semaphore.acquire()
    permit.release()
    semaphore.acquire()
    const reacquired = permit.reacquire()
    permit.end()
    await expect(reacquired).resolves.toBeUndefined()
    expect(permit.state).toBe('ended')
  })
})
