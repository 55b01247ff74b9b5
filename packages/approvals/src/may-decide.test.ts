import { DECIDERS, STANDINGS, type Standing } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { mayDecide, stillAsks } from './may-decide.ts'

const asked = (standing: Standing | null, decider: (typeof DECIDERS)[number] | null = 'asker', sources: string[] = []) => ({
  decider,
  standing,
  sources,
})

/** The standings that may decide a question which was put to them. */
const deciders = (question: ReturnType<typeof asked>, isAsked = true): Standing[] =>
  STANDINGS.filter((standing) => mayDecide(question, { standing, isAsked, source: 'message from ann on roomchat' }))

test.each([
  ['operator', ['operator']],
  ['client', ['operator', 'client']],
  ['listed', ['operator', 'client', 'listed']],
  ['stranger', ['operator', 'client', 'listed']],
  [null, ['operator', 'client', 'listed']],
] as const)('a call of %s is decided by people of at least its standing, and never by strangers', (standing, expected) => {
  expect(deciders(asked(standing))).toEqual(expected)
  expect(deciders(asked(standing, 'starter'))).toEqual(expected)
  expect(deciders(asked(standing, null))).toEqual(expected)
})

test('only operators decide what only an operator decides, and what they were not asked about', () => {
  for (const standing of STANDINGS) expect(deciders(asked(standing, 'operator'))).toEqual(['operator'])
  for (const decider of DECIDERS) expect(deciders(asked('listed', decider), false)).toEqual(['operator'])
})

test('the source of untrusted text decides nothing after it', () => {
  expect(deciders(asked('listed', 'asker', ['http_request https://a.test', 'message from ann on roomchat']))).toEqual([])
  expect(deciders(asked('listed', 'asker', ['message from eve on roomchat']))).toEqual(['operator', 'client', 'listed'])
})

test('an earlier answer counts only if the person who gave it may decide the call now', () => {
  const stored = (decider: 'asker' | 'operator' | null, byStanding: Standing | null = null) => ({ decider, byStanding })
  expect(DECIDERS.map((now) => stillAsks(stored(null, 'listed'), now))).toEqual([true, true, false])
  expect(DECIDERS.map((now) => stillAsks(stored('asker', 'operator'), now))).toEqual([true, true, true])
  expect(DECIDERS.map((now) => stillAsks(stored('operator'), now))).toEqual([true, true, true])
})
