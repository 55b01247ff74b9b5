import type { ClusterStore, Inbound, OwnedStore, WaitingMessage } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { arrivalOrder } from './arrival-order.ts'

const row = (number: number): WaitingMessage => ({
  number,
  channel: 'x',
  account: 'a',
  sender: 's',
  lane: 'room',
  atMs: 0,
  interruptions: 0,
})
const message = (number: number): Inbound => ({ id: `${number}`, account: 'a', sender: 'ann', to: { to: 'room' }, text: `${number}` })

/** `stored` are the unfinished messages of the session. */
function arrange(stored: readonly number[], read = async (_: readonly number[]) => stored.map(row)) {
  const entered: string[] = []
  const left: number[] = []
  const failures: unknown[] = []
  const cluster = { messagesBeside: read } as unknown as ClusterStore
  const order = arrivalOrder(
    { cluster },
    {
      enter: () => {
        throw new Error('a node of a cluster enters no message before it has read those before')
      },
      enterStored: ({ number }, arrived) => {
        entered.push(arrived ? `${number} arrived` : `${number}`)
        return number !== 9
      },
      left: ({ number }) => void left.push(number),
      failed: (error) => void failures.push(error),
    },
  )
  const inOrder = {
    arrived: (number: number) => order.arrived({ row: row(number), message: message(number) }, {} as OwnedStore),
    stored: (...numbers: number[]) => order.stored({ shards: null, messages: numbers }),
  }
  return { order, inOrder, entered, left, failures }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('a message enters after earlier messages of its session from other nodes', async () => {
  const { inOrder, entered, left } = arrange([3, 5, 7])
  inOrder.arrived(7)
  await turn()
  expect([entered, left]).toEqual([['3', '5', '7 arrived'], []])
})

test('messages that arrive during a read share the next one', async () => {
  const reads: (readonly number[])[] = []
  const { inOrder } = arrange([], async (numbers) => {
    reads.push(numbers)
    await turn()
    return []
  })
  inOrder.stored(1)
  await turn()
  inOrder.stored(2, 3)
  inOrder.stored(3)
  await turn()
  await turn()
  expect(reads).toEqual([[1], [2, 3]])
})

test('a message that has ended, or that is queued already, counts as left', async () => {
  const { inOrder, left } = arrange([9])
  for (const number of [8, 9]) inOrder.arrived(number)
  await turn()
  expect(left).toEqual([8, 9])
})

test('messages stay in the store when it cannot be read, and later ones enter', async () => {
  let isDown = true
  const { inOrder, entered, left, failures } = arrange([], async () => {
    if (isDown) throw new Error('the store cannot be read')
    return [row(2)]
  })
  inOrder.arrived(1)
  await turn()
  expect([failures.length, left]).toEqual([1, [1]])
  isDown = false
  inOrder.arrived(2)
  await turn()
  expect(entered).toEqual(['2 arrived'])
})

test('a change that names no messages enters none', () => {
  expect(arrange([]).order.stored({ shards: null })).toBe(false)
})

test('without a cluster, a message enters as it arrives, and changes of other processes name none', () => {
  const entered: number[] = []
  const order = arrivalOrder(
    {},
    {
      enter: ({ number }) => entered.push(number) < 2,
      enterStored: () => true,
      left: () => {},
      failed: () => {},
    },
  )
  const arrived = [7, 8].map((number) => order.arrived({ row: row(number), message: message(number) }, {} as OwnedStore))
  expect([arrived, entered, order.stored({ shards: null, messages: [9] })]).toEqual([[true, false], [7, 8], false])
})
