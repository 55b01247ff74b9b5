import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { type MailPart, mailSchema } from './mail.ts'
import { readMail } from './read-mail.ts'

type Headers = Readonly<Record<string, string | readonly string[]>>

const headerList = (headers: Headers) =>
  Object.entries(headers).flatMap(([name, values]) => [values].flat().map((value) => ({ name, value })))
const encode = (text: string | Uint8Array) => Buffer.from(text).toString('base64url')
const part = (mimeType: string, text: string | Uint8Array, headers: Headers = {}) => ({
  mimeType,
  headers: headerList(headers),
  body: { data: encode(text) },
})
const multi = (kind: string, ...parts: object[]) => ({ mimeType: `multipart/${kind}`, parts })

const USUAL = { From: 'Ada <ada@example.com>', Subject: 'Hello', 'Message-ID': '<1@example.com>' }

/** What a mail with this payload and these headers is read as. */
const read = (
  payload: object,
  headers: Headers = {},
  { mustBeProved = true, allowed = 'example.com', ...mail }: Record<string, unknown> & { allowed?: string } = {},
) => {
  const all = { ...(payload as MailPart), headers: [...headerList({ ...USUAL, ...headers }), ...((payload as MailPart).headers ?? [])] }
  return readMail(v.parse(mailSchema, { id: 'm1', threadId: 't1', labelIds: ['INBOX'], payload: all, ...mail }), {
    mailbox: 'bot@example.net',
    mustBeProved: mustBeProved === true,
    isAllowed: (address) => address.endsWith(allowed),
  })
}
const inbound = (...given: Parameters<typeof read>) => {
  const reading = read(...given)
  if ('ignored' in reading) throw new Error(reading.ignored)
  return reading.inbound
}
const textOf = (payload: object, mail = {}) => inbound(payload, {}, mail).text.replace('Subject: Hello\n\n', '')
const plain = part('text/plain', 'hi')

test('a mail is its subject and its text, of its one sender', () => {
  expect(inbound(plain, {}, { internalDate: '1767225600000' })).toEqual({
    id: 'm1',
    account: 'bot@example.net',
    sender: 'ada@example.com',
    to: {
      to: 'ada@example.com',
      thread: 't1',
      replyTo: '<1@example.com>',
      more: { subject: 'Hello', from: 'bot@example.net', references: '<1@example.com>' },
    },
    text: 'Subject: Hello\n\nhi',
    sentAtMs: 1_767_225_600_000,
  })
})

test.each<[what: string, payload: object, text: string]>([
  ['plain text before HTML', multi('alternative', plain, part('text/html', '<p>rich</p>')), 'hi'],
  ['plain text before HTML, in whatever order', multi('alternative', part('text/html', '<p>rich</p>'), plain), 'hi'],
  ['HTML where there is no plain text', multi('alternative', part('text/html', '<p>rich &amp; poor</p>')), 'rich & poor'],
  ['HTML where the plain text is empty', multi('alternative', part('text/plain', ' \r\n'), part('text/html', '<p>rich</p>')), 'rich'],
  ['HTML with its pictures', multi('alternative', multi('related', part('text/html', '<b>rich</b>'), part('image/png', 'x'))), 'rich'],
  ['all inline texts', multi('mixed', plain, part('image/png', 'x'), part('text/plain', 'bye')), 'hi\n\nbye'],
  ['plain line ends', part('text/plain', 'a\r\nb\rc'), 'a\nb\nc'],
  ['the charset of the part', part('text/plain', Uint8Array.of(0xe9), { 'Content-Type': 'text/plain; charset="ISO-8859-1"' }), 'é'],
  ['UTF-8 for a charset nobody knows', part('text/plain', 'é', { 'Content-Type': 'text/plain; charset=klingon' }), 'é'],
  ['no words of a forwarded mail', multi('mixed', plain, { mimeType: 'message/rfc822', parts: [part('text/plain', 'theirs')] }), 'hi'],
])('§2.3 the text is %s', (_, payload, text) => {
  expect(textOf(payload)).toBe(text)
})

test('§2.3 the text is the first words, as the API gives them, where there is nothing else', () => {
  expect(textOf(multi('mixed', part('application/pdf', 'x')), { snippet: 'it&#39;s attached' })).toBe("it's attached")
})

test('a mail of attachments alone is its subject, and they come with ids that can be fetched', () => {
  const file = (mimeType: string, filename: string, attachmentId: string) => ({ mimeType, filename, body: { attachmentId } })
  const payload = multi(
    'mixed',
    file('application/PDF', 'bill.pdf', 'a1'),
    multi('related', file('image/png', '', 'a2')),
    file('text/plain', 'x.txt', 'a3'),
  )
  expect(inbound(payload)).toMatchObject({
    text: 'Subject: Hello',
    attachments: [
      { kind: 'file', name: 'bill.pdf', mime: 'application/pdf', source: { id: 'm1/a1' } },
      { kind: 'image', name: 'attachment', mime: 'image/png', source: { id: 'm1/a2' } },
      { kind: 'file', name: 'x.txt', mime: 'text/plain', source: { id: 'm1/a3' } },
    ],
  })
  const many = multi('mixed', ...Array.from({ length: 50 }, (_, at) => file('image/png', `${at}.png`, `a${at}`)))
  expect(inbound(many).attachments).toHaveLength(20)
})

test('subjects are decoded, on one line, and bounded; a mail may have none', () => {
  expect(inbound(plain, { Subject: '=?utf-8?Q?Gr=C3=BC=C3=9Fe?=\r\n  and\tmore' }).text).toBe('Subject: Grüße and more\n\nhi')
  expect(inbound(plain, { Subject: [] }).text).toBe('Subject: (none)\n\nhi')
  expect([...(inbound(plain, { Subject: '😀'.repeat(600) }).to.more?.subject ?? '')]).toHaveLength(500)
})

test('a text is cut where nobody reads on, between whole characters', () => {
  const { text } = inbound(part('text/plain', `x${'😀'.repeat(100_000)}`))
  expect(text.length).toBeLessThan(200_100)
  expect(text).toMatch(/😀\n\n\[The rest of this mail is left out\.\]$/)
})

test('of all parts together no more is read than can be read at once', () => {
  const silent = part('text/html', '<b>'.repeat(700_000))
  expect(textOf(multi('mixed', silent, part('text/plain', 'late')), { snippet: 'first words' })).toBe('first words')
  expect(textOf(multi('mixed', plain, silent))).toBe('hi')
})

test('nesting without end is not followed', () => {
  let payload: object = part('text/plain', 'deep')
  for (let depth = 0; depth < 100; depth++) payload = multi('mixed', payload)
  expect(textOf(payload)).toBe('Subject: Hello')
})

describe('answers go', () => {
  const reply = (value: string | string[], allowed = 'example.com') => inbound(plain, { 'Reply-To': value }, { allowed })

  test('where the sender wants them, if the allowlist covers that; it is asked about From all the same', () => {
    expect(reply('Team <team@example.com>')).toMatchObject({ sender: 'ada@example.com', to: { to: 'team@example.com' } })
    expect(reply('Else <else@other.example>', '').to.to).toBe('else@other.example')
    expect(reply('Ada <ADA@example.com>', 'nobody').to.to).toBe('ada@example.com')
  })

  test('to the sender where somebody else is named, who may have forged the mail', () => {
    expect(reply('eve@evil.test').to.to).toBe('ada@example.com')
    expect(reply('eve@example.com.evil.test').to.to).toBe('ada@example.com')
  })

  test.each([['bot@example.net'], ['a@b.c, d@e.f'], ['nonsense'], [['a@b.c', 'd@e.f']]])('to the sender where %j is wanted', (value) => {
    expect(reply(value, '').to.to).toBe('ada@example.com')
  })
})

test('what an answer has to name is kept: the mail, and its ancestors, the first and the latest of them', () => {
  const ancestors = Array.from({ length: 40 }, (_, at) => `<${at}@x>`)
  const { to } = inbound(plain, { References: ancestors.join('\r\n '), 'Message-ID': ' <last@x> ' })
  expect(to.replyTo).toBe('<last@x>')
  const references = to.more?.references?.split(' ') ?? []
  expect(references).toHaveLength(20)
  expect([references[0], references[1], references.at(-1)]).toEqual(['<0@x>', '<22@x>', '<last@x>'])
  expect(inbound(plain, { 'Message-ID': [] }).to).not.toHaveProperty('replyTo')
  expect(inbound(plain, { 'Message-ID': '<a b@x>\r\nBcc: <c@d>' }).to.replyTo).toBe('<c@d>')
})

test.each<[what: string, headers: Headers, mail: object]>([
  ['one we sent', {}, { labelIds: ['SENT', 'INBOX'] }],
  ['a draft', {}, { labelIds: ['DRAFT'] }],
  ['one from our own address', { From: 'Bot <BOT@example.net>' }, {}],
  ['one without a sender', { From: [] }, {}],
  ['one with several', { From: 'a@example.com, b@example.com' }, {}],
  ['one with two From headers', { From: ['a@example.com', 'b@example.com'] }, {}],
  ['an automatic reply', { 'Auto-Submitted': 'auto-replied' }, {}],
  ['an automatic mail', { 'auto-submitted': 'auto-generated; type=x' }, {}],
  ['one of a mailing list', { 'List-Id': '<list.example.com>' }, {}],
  ['an absence note that says so', { 'X-Autoreply': 'yes' }, {}],
  ['an answer of an autoresponder', { 'X-Autorespond': 'Re: hello' }, {}],
  ['a mail that wants no automatic answer', { 'X-Auto-Response-Suppress': 'DR, OOF, AutoReply' }, {}],
  ['a mail that wants no answer of any machine', { 'x-auto-response-suppress': 'All' }, {}],
  ['an answer of an old autoresponder', { Precedence: 'auto_reply' }, {}],
  ['a bulk mail', { Precedence: 'Bulk' }, {}],
  ['a bounce', { 'Return-Path': '<>' }, {}],
  ['one whose sender fails DMARC', { 'Authentication-Results': 'mx.x; spf=pass; dmarc=fail (p=NONE) header.from=example.com' }, {}],
])('§2.3 %s is left out', (_, headers, mail) => {
  expect(read(plain, headers, mail as Record<string, unknown>)).toEqual({ ignored: expect.stringMatching(/\S/) })
})

test.each<[what: string, headers: Headers, mustBeProved: boolean]>([
  ['one a person wrote', { 'Auto-Submitted': 'no', Precedence: 'normal', 'Return-Path': '<ada@example.com>' }, true],
  ['one that passes DMARC', { 'Authentication-Results': 'mx.x; dmarc=pass header.from=example.com' }, true],
  ['one a host below ours judged otherwise', { 'Authentication-Results': ['mx.x; dmarc=pass', 'evil.test; dmarc=fail'] }, true],
  ['one that fails DMARC where everybody may write', { 'Authentication-Results': 'mx.x; dmarc=fail' }, false],
])('%s is read', (_, headers, mustBeProved) => {
  expect(read(plain, headers, { mustBeProved })).toHaveProperty('inbound')
})
