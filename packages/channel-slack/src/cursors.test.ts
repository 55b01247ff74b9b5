import { testHost } from '@sluice/testkit/host'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { expect, test, vi } from 'vitest'
import { createCursors } from './cursors.ts'

const at = (second: number) => `${1_767_225_600 + second}.000100`
const upTo = (cursors: ReturnType<typeof createCursors>) => Object.fromEntries(cursors.list().map(({ channel, upTo }) => [channel, upTo]))

test('a cursor never moves back, nor begins again', async () => {
  const cursors = createCursors(testHost())
  await cursors.load()
  cursors.know({ channel: 'C1' }, at(5))
  cursors.move({ channel: 'C1' }, at(9))
  cursors.move({ channel: 'C1' }, at(7))
  cursors.know({ channel: 'C1' }, at(1))
  cursors.move({ channel: 'C2' }, at(9))
  expect(upTo(cursors)).toEqual({ C1: at(9) })
})

test('while they are held none moves, and then each does as far as it came', async () => {
  const host = testHost()
  const cursors = createCursors(host)
  await cursors.load()
  cursors.know({ channel: 'C1' }, at(1))
  cursors.hold()
  cursors.move({ channel: 'C1' }, at(9))
  cursors.move({ channel: 'C1' }, at(8))
  expect(upTo(cursors)).toEqual({ C1: at(1) })
  cursors.release()
  await vi.waitFor(async () => expect(await host.keyValue.get('cursors')).toEqual({ channels: { C1: at(9) }, threads: {} }))
})

test('those used longest ago are dropped: 400 conversations and 100 threads stay', async () => {
  const cursors = createCursors(testHost())
  await cursors.load()
  for (let index = 0; index < 500; index++) {
    cursors.know({ channel: `C${index}` }, at(1))
    cursors.know({ channel: 'C499', thread: at(index) }, at(index))
    cursors.move({ channel: 'C0' }, at(index))
  }
  const kept = cursors.list()
  expect([kept.filter(({ thread }) => !thread).length, kept.filter(({ thread }) => thread).length]).toEqual([400, 100])
  expect(kept).toContainEqual({ channel: 'C0', upTo: at(499) })
})

test('nothing is written before what was kept is read', async () => {
  const keyValue = memoryKeyValue()
  await keyValue.set('cursors', { channels: { C1: at(1) }, threads: { [`C1/${at(0)}`]: at(0) } })
  const cursors = createCursors(testHost({ keyValue }))
  cursors.know({ channel: 'C2' }, at(2))
  await new Promise((resolve) => setImmediate(resolve))
  expect(await keyValue.get('cursors')).toMatchObject({ channels: { C1: at(1) } })
  await cursors.load()
  await vi.waitFor(async () =>
    expect(await keyValue.get('cursors')).toEqual({ channels: { C2: at(2), C1: at(1) }, threads: { [`C1/${at(0)}`]: at(0) } }),
  )
})

test('a cursor that cannot be kept is a warning', async () => {
  const keyValue = { ...memoryKeyValue(), set: () => Promise.reject(new Error('the disk is full')) }
  const host = testHost({ keyValue })
  const cursors = createCursors(host)
  await cursors.load()
  cursors.know({ channel: 'C1' }, at(1))
  await vi.waitFor(() => expect(host.logs).toMatchObject([{ level: 'warn' }]))
})
