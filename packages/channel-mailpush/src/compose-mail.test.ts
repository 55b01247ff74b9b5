import { decodeWords } from '@sluice/mail-common/reading'
import type { Address } from '@sluice/sdk'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { composeReply } from './send.ts'
import { readSentMail } from './testing/fake-sent.ts'

const NOW_MS = Date.UTC(2026, 0, 2, 3, 4, 5)
const TO: Address = {
  to: 'ada@example.com',
  thread: 't1',
  replyTo: '<2@example.com>',
  more: { subject: 'Hello', from: 'bot@example.net', references: '<1@example.com> <2@example.com>' },
}

/** Composes a mail and parses it like a server. */
const compose = async (changes: Partial<Address> = {}, text = 'hi', clientId = 'client-1') => {
  const raw = (await composeReply({ ...TO, ...changes }, { text, clientId }, NOW_MS)).toString('base64url')
  const read = readSentMail(raw, undefined)
  if (typeof read === 'string') throw new Error(read)
  return read
}

test('addresses and threads a reply and marks it as automatic', async () => {
  const { headers, text } = await compose()
  expect(Object.fromEntries(headers)).toEqual({
    from: 'bot@example.net',
    to: 'ada@example.com',
    subject: 'Re: Hello',
    date: 'Fri, 02 Jan 2026 03:04:05 +0000',
    'message-id': expect.stringMatching(/^<[\da-f]{32}@example\.net>$/),
    'in-reply-to': '<2@example.com>',
    references: '<1@example.com> <2@example.com>',
    'auto-submitted': 'auto-replied',
    'mime-version': '1.0',
    'content-type': 'text/plain; charset=utf-8',
    'content-transfer-encoding': 'base64',
  })
  expect(text).toBe('hi')
})

test('refers to no other mail without a thread', async () => {
  const { headers } = await compose({ replyTo: undefined, thread: undefined, more: undefined } as unknown as Partial<Address>)
  expect(headers.get('auto-submitted')).toBe('auto-generated')
  expect(headers.get('subject')).toBe('')
  expect(headers.get('message-id')).toMatch(/@mailpush\.invalid>$/)
  for (const name of ['from', 'in-reply-to', 'references']) expect(headers.has(name)).toBe(false)
})

test('gives every attempt of one message the same unique Message-ID', async () => {
  const id = async (clientId: string) => (await compose({}, 'hi', clientId)).headers.get('message-id')
  expect(await id('client-1')).toBe(await id('client-1'))
  expect(await id('client-1')).not.toBe(await id('client-2'))
})

describe('the subject', () => {
  const subject = async (given: string) => decodeWords((await compose({ more: { subject: given } })).headers.get('subject') ?? '')
  test.each([
    ['Hello', 'Re: Hello'],
    ['Re: Hello', 'Re: Hello'],
    ['RE: re:  Re : Hello', 'Re: Hello'],
    ['Regarding you', 'Re: Regarding you'],
    ['Grüße 😀', 'Re: Grüße 😀'],
    ['=?utf-8?Q?x?=', 'Re: =?utf-8?Q?x?='],
  ])('%j becomes %j', async (given, answered) => {
    expect(await subject(given)).toBe(answered)
  })

  test('is cut to 500 characters', async () => {
    expect([...(await subject('😀'.repeat(2000)))]).toHaveLength(504)
  })
})

test('no value of an address adds a header or a recipient or changes the text', async () => {
  const nasty = fc.string({
    unit: fc.constantFrom('a', '\r', '\n', ' ', ':', '<', '>', '@', ',', '\0', 'Bcc: x@evil.test', 'é'),
    maxLength: 20,
  })
  const names = [...(await compose()).headers.keys()]
  await fc.assert(
    fc.asyncProperty(nasty, nasty, nasty, nasty, fc.string({ unit: 'grapheme' }), async (subject, from, references, replyTo, text) => {
      const read = await compose({ replyTo, more: { subject, from, references } }, text)
      for (const name of read.headers.keys()) expect(names).toContain(name)
      expect(read.headers.get('to')).toBe('ada@example.com')
      expect(read.text).toBe(text.replace(/\r\n?/g, '\n'))
    }),
    { seed: 3 },
  )
})

test.each(['', 'ada', 'ada@example.com\r\nBcc: x@evil.test', 'ada@example.com, x@evil.test', 'Ada <ada@example.com>'])(
  'rejects the recipient %j',
  async (to) => {
    await expect(compose({ to })).rejects.toThrow(expect.objectContaining({ code: 'invalid_request' }))
  },
)

test('sends the longest text in lines that every server accepts', async () => {
  const text = '€'.repeat(500_000)
  expect((await compose({}, text)).text).toBe(text)
})
