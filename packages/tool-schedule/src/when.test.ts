import { describe, expect, test } from 'vitest'
import { dueOf, type When } from './when.ts'

const NOW = Date.parse('2026-03-01T12:00:00Z')
const MIN_MS = 300_000
const at = (when: When) => new Date(dueOf(when, NOW, MIN_MS).nextMs).toISOString()

describe('the time of a reminder', () => {
  test.each<[When, string]>([
    [{ inMinutes: 10 }, '2026-03-01T12:10:00.000Z'],
    [{ at: '2026-03-02T09:00+01:00' }, '2026-03-02T08:00:00.000Z'],
    [{ at: '2026-03-02T09:00:30Z', timezone: 'Europe/Oslo' }, '2026-03-02T09:00:30.000Z'],
    [{ at: '2026-03-02T09:00', timezone: 'Europe/Oslo' }, '2026-03-02T08:00:00.000Z'],
    // The clocks skip 02:30 in spring: it is due at the change. They show 02:30 twice in autumn: it is due the first time.
    [{ at: '2026-03-29T02:30', timezone: 'Europe/Oslo' }, '2026-03-29T01:00:00.000Z'],
    [{ at: '2026-10-25T02:30', timezone: 'Europe/Oslo' }, '2026-10-25T00:30:00.000Z'],
    [{ cron: '0 9 * * 1', timezone: 'Europe/Oslo' }, '2026-03-02T08:00:00.000Z'],
    [{ cron: '0 9 * * 1', timezone: 'UTC' }, '2026-03-02T09:00:00.000Z'],
  ])('%j is due at %s', (when, due) => {
    expect(at(when)).toBe(due)
  })

  test.each<[When, string]>([
    [{}, 'exactly one of'],
    [{ inMinutes: 5, cron: '0 9 * * *' }, 'exactly one of'],
    [{ at: '2026-03-01T11:59Z' }, 'in the past'],
    [{ at: '2026-03-02T09:00' }, 'has no offset'],
    [{ at: '2026-02-30T09:00Z' }, 'is not a time'],
    [{ at: '2026-03-02T09:00+99:99' }, 'offset'],
    [{ at: 'tomorrow' }, 'is not a time'],
    [{ at: '2099-03-02T09:00Z' }, 'within 5 years'],
    [{ at: '2026-03-02T09:00', timezone: 'Mars/Base' }, 'is not an IANA time zone'],
    [{ cron: '0 9 * * *' }, 'has no time zone: give the timezone of the user'],
    [{ cron: '0 9 * *', timezone: 'UTC' }, 'is not a cron expression'],
    [{ cron: '* * * * *', timezone: 'UTC' }, 'more often than every 300 seconds'],
    [{ cron: '0,1 9 * * *', timezone: 'UTC' }, 'more often than every 300 seconds'],
  ])('%j is refused', (when, why) => {
    expect(() => dueOf(when, NOW, MIN_MS)).toThrow(why)
    expect(() => dueOf(when, NOW, MIN_MS)).toThrow('It is now 2026-03-01T12:00:00.000Z')
  })
})
