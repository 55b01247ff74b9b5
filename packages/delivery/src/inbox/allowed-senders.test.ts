import type { Channel } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { describe, expect, test } from 'vitest'
import { AllowedSenders } from './allowed-senders.ts'

const channel = (allow: readonly string[], more: Partial<Channel> = {}) => ({ name: 'x', allow, ...more }) as Channel

describe('AllowedSenders', () => {
  test('denies all by an empty list, allows all by *, and compares normal forms', () => {
    const senders = new AllowedSenders(testHost())
    const normalise = (entry: string) => entry.replaceAll(' ', '')
    expect(senders.admit(channel([]), '+1555')).toBe(false)
    expect(senders.admit(channel(['*']), '+1555')).toBe(true)
    expect(senders.admit(channel(['+1 555'], { normalise }), '+1555')).toBe(true)
    expect(senders.admit(channel(['+1 555'], { normalise }), '+1556')).toBe(false)
  })

  test('lets a channel match an entry to senders that are spelled differently', () => {
    const senders = new AllowedSenders(testHost())
    const mail = channel(['@example.org'], { matches: (entry, sender) => sender.endsWith(entry) })
    expect(senders.admit(mail, 'ada@example.org')).toBe(true)
    expect(senders.admit(mail, 'ada@example.net')).toBe(false)
  })

  test('keeps no verdict for a channel that was built again', () => {
    const senders = new AllowedSenders(testHost())
    expect(senders.admit(channel(['a']), 'b')).toBe(false)
    expect(senders.admit(channel(['b']), 'b')).toBe(true)
  })

  test('logs each sender that is not allowed once a day', async () => {
    const host = testHost()
    const senders = new AllowedSenders(host)
    const list = channel([])
    for (const sender of ['a', 'a', 'b']) senders.admit(list, sender)
    expect(host.logs.map(({ level, fields }) => [level, fields.sender])).toEqual([
      ['info', 'a'],
      ['info', 'b'],
    ])
    await host.advance(24 * 3_600_000 - 1)
    senders.admit(list, 'a')
    expect(host.logs).toHaveLength(2)
    await host.advance(1)
    senders.admit(list, 'a')
    expect(host.logs).toHaveLength(3)
  })

  test('denies a sender with a very long name without a log line', () => {
    const host = testHost()
    const senders = new AllowedSenders(host)
    expect(senders.admit(channel([]), 'a'.repeat(1000))).toBe(false)
    expect(senders.admit(channel(['a'.repeat(1000)]), 'a'.repeat(1000))).toBe(true)
    expect(host.logs).toEqual([])
  })
})
