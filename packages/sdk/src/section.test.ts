import * as v from 'valibot'
import { expect, test } from 'vitest'
import { headerSecret } from './index.ts'

test.each(['xoxb-1-2_3.4', 'Basic dXNlcg==', ' token \n'])('accepts the header token %j', (token) => {
  expect(v.parse(headerSecret(), token).reveal()).toBe(token)
})

test.each(['to\nken', 'tok\u2014en', 'to\u0000ken', 'tök\u0080en', '\u201Ctoken\u201D'])('refuses the header token %j', (token) => {
  const { success, issues } = v.safeParse(headerSecret(), token)
  expect([success, issues?.[0]?.message]).toEqual([
    false,
    'must contain printable ASCII characters only, because it is sent in an HTTP header',
  ])
})
