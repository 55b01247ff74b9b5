/** The ownership of a node that shares the shards with others. The store is a fake that grants what the test says. */
import { type ClusterRole, type ClusterStore, type Lease, type LeaseName, type OwnedStore, shardsLease, shardsOf } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import { ShardOwnership } from './ownership.ts'

function arrange(roles: readonly ClusterRole[] = ['ingress', 'worker', 'channels']) {
  const host = testHost()
  const released: LeaseName[] = []
  const grant = (name: LeaseName): Lease => {
    const lost = new AbortController()
    return {
      name,
      epoch: 1,
      shards: shardsOf(name),
      lost: lost.signal,
      mayAct: () => !lost.signal.aborted,
      async release() {
        if (!lost.signal.aborted) released.push(name)
        lost.abort()
      },
    }
  }
  const claims: { share: number; take?: readonly number[]; isDrained?: boolean }[] = []
  let wake = (): void => {}
  const cluster = {
    roles,
    async claimShards() {
      const { share, take = [], isDrained = false } = claims.shift() ?? { share: 4 }
      return { share, isDrained, taken: take.map((shard) => grant(shardsLease({ from: shard, to: shard }))) }
    },
    changed: () =>
      new Promise<void>((resolve) => {
        wake = resolve
      }),
    leave: async () => {},
  } as unknown as ClusterStore
  const store = { cluster, leases: { acquire: async (name: LeaseName) => grant(name) }, under: (lease: Lease) => ({ lease }) as OwnedStore }
  const ownership = new ShardOwnership({ ...host, store })
  const settle = async (): Promise<void> => {
    for (let round = 0; round < 5; round++) await new Promise((resolve) => setImmediate(resolve))
  }
  return {
    ownership,
    released,
    async start(share: number, take: readonly number[]) {
      claims.push({ share, take })
      await ownership.start()
    },
    async claim(claim: (typeof claims)[number]) {
      claims.push(claim)
      wake()
      await settle()
    },
    settle,
    held: () => ownership.held().map(({ lease }) => lease.shards?.from),
  }
}

test('takes its share, never owns all, and gives the surplus up', async () => {
  const { ownership, start, claim, held, released } = arrange()
  await start(256, [0, 1, 2, 3])
  expect([ownership.ownsAll, ownership.isStarted, ownership.share, held()]).toEqual([false, true, 256, [0, 1, 2, 3]])
  await claim({ share: 2 })
  expect([held(), released, ownership.of(1)?.lease.name, ownership.of(3)]).toEqual([
    [0, 1],
    ['shards/2-2', 'shards/3-3'],
    'shards/1-1',
    undefined,
  ])
})

test('keeps a shard in which something runs until that has ended, and begins nothing there', async () => {
  const { ownership, start, claim, settle, released } = arrange()
  await start(2, [5, 6])
  const ended = Promise.withResolvers<void>()
  await ownership.onShards(
    async () => {},
    async ({ lease }) => {
      if (lease.name === 'shards/6-6') await ended.promise
    },
  )
  await claim({ share: 0 })
  expect([released, ownership.of(6)]).toEqual([['shards/5-5'], undefined])
  ended.resolve()
  await settle()
  expect(released).toEqual(['shards/5-5', 'shards/6-6'])
})

test('a shard whose work cannot be resumed is released, and the others are kept', async () => {
  const { ownership, start, claim, held, released } = arrange()
  await start(4, [1])
  await ownership.onShards(async ({ lease }) => {
    if (lease.name === 'shards/2-2') throw new Error('the store cannot be read')
  })
  await claim({ share: 4, take: [2, 3] })
  expect([held(), released]).toEqual([[1, 3], ['shards/2-2']])
})

test('a drained node ends what it holds, and begins again once it is undrained', async () => {
  const { ownership, start, claim } = arrange()
  await start(4, [])
  const running: string[] = []
  const stop = new AbortController()
  const work = async (_: unknown, signal: AbortSignal): Promise<void> => {
    running.push('begun')
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    running.push('ended')
  }
  const holding = ownership.whileHolding('leader/cron', work, stop.signal)
  await claim({ share: 0, isDrained: true })
  expect(running).toEqual(['begun', 'ended'])
  await claim({ share: 4 })
  expect(running).toEqual(['begun', 'ended', 'begun'])
  stop.abort()
  await holding
})

test('a node holds connections only with the role for them', async () => {
  const { ownership, start } = arrange(['worker'])
  await start(4, [])
  const stop = new AbortController()
  const begun: string[] = []
  const hold = (name: LeaseName) => ownership.whileHolding(name, async () => void begun.push(name), stop.signal)
  const holding = [hold('channel/discord/main'), hold('leader/prune')]
  await new Promise((resolve) => setImmediate(resolve))
  stop.abort()
  await Promise.all(holding)
  expect(begun).toEqual(['leader/prune'])
})
