import { expect, test } from 'vitest'
import { parseRoomRule, type RoomRule } from './room-rule.ts'

test('reads a rule, and the absence of one', () => {
  const rule: RoomRule = { session: 'shared', people: ['ann'], respond: 'judge', tools: ['a'], turns_per_hour: 1 }
  expect(parseRoomRule(rule)).toEqual({ rule, readable: rule, unreadable: [] })
  expect(parseRoomRule(undefined)).toEqual({ rule: {}, readable: {}, unreadable: [] })
})

test.each([
  [{ session: 'shared', people: ['ann'], tools: ['a'], turns_per_hour: 1, mood: 'new' }, ['mood']],
  [
    { session: 'shared', people: ['ann'], tools: ['a'], turns_per_hour: 1, respond: 'sometimes', usd_per_day: 'all' },
    ['respond', 'usd_per_day'],
  ],
])('answers nobody where a part cannot be read, and keeps the others: %j', (stored, unreadable) => {
  expect(parseRoomRule(stored)).toEqual({
    rule: { session: 'shared', people: ['ann'], tools: ['a'], turns_per_hour: 1, respond: 'never' },
    readable: { session: 'shared', people: ['ann'], tools: ['a'], turns_per_hour: 1 },
    unreadable,
  })
})

test.each([
  [{ session: 'by-topic', language: 'German' }, { language: 'German' }, ['session']],
  ['always', {}, ['whole_rule']],
])('gives each person a conversation where it cannot be read who shares one: %j', (stored, readable, unreadable) => {
  expect(parseRoomRule(stored)).toEqual({ rule: { ...readable, session: 'person', respond: 'never' }, readable, unreadable })
})
