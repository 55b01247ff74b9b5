import { ALL_SHARDS, type Lease, type LeaseName, leaseLost, type OwnedStore, shardsLease, shardsOf } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { describe, expect, test } from 'vitest'
import { ShardOwnership } from './ownership.ts'

interface FakeLease extends Lease {
  lose(): void
}

/** A store that grants each lease at once. */
function arrange() {
  const host = testHost()
  const granted: FakeLease[] = []
  const released: string[] = []
  const grant = (name: LeaseName): Lease => {
    const lost = new AbortController()
    const epoch = granted.length + 1
    const lease: FakeLease = {
      name,
      epoch,
      shards: shardsOf(name),
      lost: lost.signal,
      mayAct: () => !lost.signal.aborted,
      lose: () => lost.abort(),
      async release() {
        if (!lost.signal.aborted) released.push(`${name} ${epoch}`)
        lost.abort()
      },
    }
    granted.push(lease)
    return lease
  }
  const store = { leases: { acquire: async (name: LeaseName) => grant(name) }, under: (lease: Lease) => ({ lease }) as OwnedStore }
  return { host, granted, released, ownership: new ShardOwnership({ ...host, store }) }
}

const epochOf = (owned: OwnedStore | undefined) => owned?.lease.epoch

describe('the ownership of shards', () => {
  test('holds all shards between start and stop', async () => {
    const { ownership, released } = arrange()
    expect([ownership.isStarted, ownership.of(7)]).toEqual([false, undefined])
    await ownership.start()
    expect([ownership.isStarted, ownership.ownsAll, epochOf(ownership.of(0)), epochOf(ownership.of(255))]).toEqual([true, true, 1, 1])
    await ownership.stop()
    expect([ownership.of(7), released]).toEqual([undefined, [`${shardsLease(ALL_SHARDS)} 1`]])
  })

  test('counts no lease as held while this process may not act under it', async () => {
    const { ownership, granted } = arrange()
    await ownership.start()
    expect(ownership.leases()).toEqual({ held: 1, wanted: 1 })
    const [lease = expect.fail('a lease was granted')] = granted
    lease.mayAct = () => false
    expect(ownership.leases()).toEqual({ held: 0, wanted: 1 })
    lease.mayAct = () => true
    expect(ownership.leases()).toEqual({ held: 1, wanted: 1 })
  })

  test('gives a lease to the listeners in their order, and each later one again', async () => {
    const { ownership, granted, host } = arrange()
    const taken: string[] = []
    await ownership.start()
    for (const name of ['first', 'second']) await ownership.onShards(async (owned) => void taken.push(`${name} ${epochOf(owned)}`))
    granted[0]?.lose()
    expect(ownership.held()).toEqual([])
    await host.advance(60_000)
    expect(taken).toEqual(['first 1', 'second 1', 'first 2', 'second 2'])
    expect(epochOf(ownership.of(7))).toBe(2)
  })

  test('releases a later lease whose work cannot be resumed, and acquires it again', async () => {
    const { ownership, granted, released, host } = arrange()
    let failures = 0
    await ownership.start()
    await ownership.onShards(async (owned) => {
      if (epochOf(owned) === 2) throw new Error(`the disk does not answer ${++failures}`)
    })
    granted[0]?.lose()
    for (let minute = 0; minute < 3; minute++) await host.advance(60_000)
    expect([failures, released, epochOf(ownership.of(7))]).toEqual([1, [`${shardsLease(ALL_SHARDS)} 2`], 3])
  })

  test('gives a lease once to a listener that registers while others resume its work', async () => {
    const { ownership, granted, host } = arrange()
    const taken: string[] = []
    const gate = Promise.withResolvers<void>()
    await ownership.start()
    await ownership.onShards(async (owned) => {
      if (epochOf(owned) === 2) await gate.promise
    })
    granted[0]?.lose()
    await host.advance(60_000)
    await ownership.onShards(async (owned) => void taken.push(`late ${epochOf(owned)}`))
    gate.resolve()
    await host.advance(0)
    expect(taken).toEqual(['late 2'])
  })

  test('stops although the store cannot release a lease', async () => {
    const { ownership, granted, host } = arrange()
    await ownership.start()
    const [lease] = granted
    if (lease) {
      lease.release = async () => {
        lease.lose()
        throw new Error('the disk is full')
      }
    }
    await ownership.stop()
    expect(host.logs).toMatchObject([{ level: 'warn', message: 'lease not released' }])
  })

  test('rejects when the work cannot be resumed at the start', async () => {
    const { ownership } = arrange()
    await ownership.start()
    await expect(ownership.onShards(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
  })
})

describe('work under a lease', () => {
  test('ends with the lease, begins again after a delay, and ends with its signal', async () => {
    const { ownership, granted, released, host } = arrange()
    const stop = new AbortController()
    const log: string[] = []
    const done = ownership.whileHolding(
      'leader/cron',
      async ({ lease }, signal) => {
        log.push(`begins ${lease.epoch}`)
        await host.clock.sleep(1e9, signal)
        log.push(`ends ${lease.epoch}`)
      },
      stop.signal,
    )
    await host.advance(0)
    granted[0]?.lose()
    await host.advance(0)
    expect(log).toEqual(['begins 1', 'ends 1'])
    await host.advance(60_000)
    stop.abort()
    await done
    expect(log).toEqual(['begins 1', 'ends 1', 'begins 2', 'ends 2'])
    expect(released).toEqual(['leader/cron 2'])
  })

  test('has ended and released its lease when a stop resolves', async () => {
    const { ownership, released, host } = arrange()
    await ownership.start()
    const gate = Promise.withResolvers<void>()
    void ownership.whileHolding('leader/cron', () => gate.promise, new AbortController().signal)
    await host.advance(0)
    let isStopped = false
    const stopped = ownership.stop().then(() => {
      isStopped = true
    })
    await host.advance(0)
    expect([isStopped, released]).toEqual([false, []])
    gate.resolve()
    await stopped
    expect(released).toEqual(['leader/cron 2', `${shardsLease(ALL_SHARDS)} 1`])
  })

  test('begins again after it failed, and only an error of its own is logged', async () => {
    const { ownership, host } = arrange()
    const stop = new AbortController()
    const failures = [leaseLost('leader/cron'), new Error('the disk does not answer')]
    let runs = 0
    void ownership.whileHolding(
      'leader/cron',
      async () => {
        runs++
        const failure = failures.shift()
        if (failure) throw failure
      },
      stop.signal,
    )
    for (let minute = 0; minute < 3; minute++) await host.advance(60_000)
    stop.abort()
    expect(runs).toBeGreaterThanOrEqual(3)
    expect(host.logs.filter(({ level }) => level === 'error')).toHaveLength(1)
  })
})
