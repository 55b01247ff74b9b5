import type { Host } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { describe, expect, test, vi } from 'vitest'
import { Cursors } from './cursors.ts'

const at = (second: number) => `${1_767_225_600 + second}.000100`
const cursorsOn = ({ keyValue, log }: Host) => new Cursors(keyValue, log)
const upTo = (cursors: Cursors) => Object.fromEntries(cursors.list().map(({ channel, upTo }) => [channel, upTo]))

describe('Cursors', () => {
  test('never moves back and follows a place once', async () => {
    const cursors = cursorsOn(testHost())
    await cursors.load()
    cursors.follow({ channel: 'C1' }, at(5))
    cursors.advance({ channel: 'C1' }, at(9))
    cursors.advance({ channel: 'C1' }, at(7))
    cursors.follow({ channel: 'C1' }, at(1))
    cursors.advance({ channel: 'C2' }, at(9))
    expect(upTo(cursors)).toEqual({ C1: at(9) })
  })

  test('moves held cursors only once they are released', async () => {
    const host = testHost()
    const cursors = cursorsOn(host)
    await cursors.load()
    cursors.follow({ channel: 'C1' }, at(1))
    cursors.hold()
    cursors.advance({ channel: 'C1' }, at(9))
    cursors.advance({ channel: 'C1' }, at(8))
    expect(upTo(cursors)).toEqual({ C1: at(1) })
    cursors.release()
    await vi.waitFor(async () => expect(await host.keyValue.get('cursors')).toEqual({ channels: { C1: at(9) }, threads: {} }))
  })

  test('keeps the 400 conversations and 100 threads that were used last', async () => {
    const cursors = cursorsOn(testHost())
    await cursors.load()
    for (let index = 0; index < 500; index++) {
      cursors.follow({ channel: `C${index}` }, at(1))
      cursors.follow({ channel: 'C499', thread: at(index) }, at(index))
      cursors.advance({ channel: 'C0' }, at(index))
    }
    const kept = cursors.list()
    expect([kept.filter(({ thread }) => !thread).length, kept.filter(({ thread }) => thread).length]).toEqual([400, 100])
    expect(kept).toContainEqual({ channel: 'C0', upTo: at(499) })
  })

  test('writes nothing before the stored cursors are loaded', async () => {
    const keyValue = memoryKeyValue()
    await keyValue.set('cursors', { channels: { C1: at(1) }, threads: { [`C1/${at(0)}`]: at(0) } })
    const cursors = cursorsOn(testHost({ keyValue }))
    cursors.follow({ channel: 'C2' }, at(2))
    await new Promise((resolve) => setImmediate(resolve))
    expect(await keyValue.get('cursors')).toMatchObject({ channels: { C1: at(1) } })
    await cursors.load()
    await vi.waitFor(async () =>
      expect(await keyValue.get('cursors')).toEqual({ channels: { C2: at(2), C1: at(1) }, threads: { [`C1/${at(0)}`]: at(0) } }),
    )
  })

  test('logs a warning when cursors cannot be stored', async () => {
    const keyValue = { ...memoryKeyValue(), set: () => Promise.reject(new Error('the disk is full')) }
    const host = testHost({ keyValue })
    const cursors = cursorsOn(host)
    await cursors.load()
    cursors.follow({ channel: 'C1' }, at(1))
    await vi.waitFor(() => expect(host.logs).toMatchObject([{ level: 'warn' }]))
  })
})
