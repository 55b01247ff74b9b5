import type { Channel } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { describe, expect, test } from 'vitest'
import { createAllowedSenders } from './allowed-senders.ts'

const channel = (allow: readonly string[], more: Partial<Channel> = {}) => ({ name: 'x', allow, ...more }) as Channel

describe('allowed senders', () => {
  test('an empty list denies everybody, * allows everybody, an entry whoever has the same normal form', () => {
    const senders = createAllowedSenders(testHost())
    const normalise = (entry: string) => entry.replaceAll(' ', '')
    expect(senders.admit(channel([]), '+1555')).toBe(false)
    expect(senders.admit(channel(['*']), '+1555')).toBe(true)
    expect(senders.admit(channel(['+1 555'], { normalise }), '+1555')).toBe(true)
    expect(senders.admit(channel(['+1 555'], { normalise }), '+1556')).toBe(false)
  })

  test('an entry may cover senders that are not written like it', () => {
    const senders = createAllowedSenders(testHost())
    const mail = channel(['@example.org'], { matches: (entry, sender) => sender.endsWith(entry) })
    expect(senders.admit(mail, 'ada@example.org')).toBe(true)
    expect(senders.admit(mail, 'ada@example.net')).toBe(false)
  })

  test('a channel built anew has a list of its own', () => {
    const senders = createAllowedSenders(testHost())
    expect(senders.admit(channel(['a']), 'b')).toBe(false)
    expect(senders.admit(channel(['b']), 'b')).toBe(true)
  })

  test('a stranger is noticed once a day, each one, and on each channel', async () => {
    const host = testHost()
    const senders = createAllowedSenders(host)
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

  test('a name too long to be one is refused without a trace', () => {
    const host = testHost()
    const senders = createAllowedSenders(host)
    expect(senders.admit(channel([]), 'a'.repeat(1000))).toBe(false)
    expect(senders.admit(channel(['a'.repeat(1000)]), 'a'.repeat(1000))).toBe(true)
    expect(host.logs).toEqual([])
  })
})
