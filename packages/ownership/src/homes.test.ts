import { type Lease, shardsLease, shardsOf } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { Homes } from './homes.ts'

function leaseOf(from: number, to: number): { readonly lease: Lease; lose(): void } {
  const lost = new AbortController()
  const name = shardsLease({ from, to })
  const lease: Lease = {
    name,
    epoch: 1,
    shards: shardsOf(name),
    lost: lost.signal,
    mayAct: () => true,
    release: async () => lost.abort(),
  }
  return { lease, lose: () => lost.abort() }
}

test('a shard belongs to the home whose lease has it, and to none after that lease is lost', () => {
  const homes = new Homes<{ readonly lease: Lease }>()
  const [low, high] = [leaseOf(0, 9), leaseOf(10, 19)]
  const lost: string[] = []
  homes.add(low, () => lost.push(`low ${homes.has(low)}`))
  homes.add(high, () => lost.push('high'))
  expect([homes.of(9), homes.of(10), homes.of(20)]).toEqual([low, high, undefined])
  low.lose()
  expect([homes.of(9), homes.of(10), [...homes], lost]).toEqual([undefined, high, [high], ['low false']])
})

test('a home that took the shards of an earlier one keeps them when that one is removed', () => {
  const homes = new Homes<{ readonly lease: Lease }>()
  const [earlier, later] = [leaseOf(0, 9), leaseOf(5, 9)]
  homes.add(earlier)
  homes.add(later)
  homes.delete(earlier)
  expect([homes.of(4), homes.of(5), homes.size]).toEqual([undefined, later, 1])
})

test('a home without a lease has every shard, and every change concerns it', () => {
  const homes = new Homes()
  const all = {}
  homes.add(all)
  expect([homes.of(0), homes.of(255)]).toEqual([all, all])
  expect(homes.concernedBy({ shards: { from: 3, to: 3 } })).toEqual([all])
})

test('a change concerns the homes of its shards, and all when it names none', () => {
  const homes = new Homes<{ readonly lease: Lease }>()
  const [low, one] = [leaseOf(0, 9), leaseOf(10, 10)]
  homes.add(low)
  homes.add(one)
  expect(homes.concernedBy({ shards: null })).toEqual([low, one])
  expect(homes.concernedBy({ shards: { from: 9, to: 12 } })).toEqual([low, one])
  expect(homes.concernedBy({ shards: { from: 5, to: 12 }, among: new Set([5, 12]) })).toEqual([low])
})

test('a lost lease is not a home', () => {
  const homes = new Homes<{ readonly lease: Lease }>()
  const gone = leaseOf(0, 9)
  gone.lose()
  homes.add(gone)
  expect([homes.of(3), homes.size]).toEqual([undefined, 0])
})
