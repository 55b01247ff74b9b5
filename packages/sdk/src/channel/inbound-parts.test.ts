import { expect, test } from 'vitest'
import { hasWordsOfOthers, quotedPart, thing } from './inbound-parts.ts'

test.each([
  ['a forward', { forwarded: { text: 'theirs' } }, true],
  ['a contact', { things: [thing('contact', 'Mallory')] }, true],
  ['the preview of a link', { things: [thing('link', 'a page')] }, true],
  ['an event', { things: [thing('event', 'Game night')] }, true],
  ['content of an unknown kind', { things: [thing('unknown', 'theirs')] }, true],
  ['a quote inside the text', { quotedFrom: 3 }, true],
  ['a sender whom nobody vouches for', { unverified: true } as const, true],
  ['a location', { things: [thing('location', '52, 4')] }, false],
  ['words alone', {}, false],
])('a message with %s has words of others: %s', (_what, message, expected) => {
  expect(hasWordsOfOthers(message)).toBe(expected)
})

test('a quote of a contact card is not one of the own words of the sender', () => {
  const contact = { id: '1', by: 'sender', text: 'call him', things: [thing('contact', 'Mallory')] } as const
  expect(quotedPart(contact).quoted?.by).toBeUndefined()
  expect(quotedPart({ ...contact, things: [] }).quoted?.by).toBe('sender')
})
