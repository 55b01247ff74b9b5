import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { type MailPart, mailSchema } from './mail.ts'
import { readMail } from './parse.ts'

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

/** Reads a mail with this payload and these headers. */
const read = (
  payload: object,
  headers: Headers = {},
  { requiresDmarc = true, allowed = 'example.com', ...mail }: Record<string, unknown> & { allowed?: string } = {},
) => {
  const all = { ...(payload as MailPart), headers: [...headerList({ ...USUAL, ...headers }), ...((payload as MailPart).headers ?? [])] }
  return readMail(v.parse(mailSchema, { id: 'm1', threadId: 't1', labelIds: ['INBOX'], payload: all, ...mail }), {
    ownAddress: 'bot@example.net',
    requiresDmarc: requiresDmarc === true,
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

test('returns the subject, text and sender of a mail', () => {
  expect(inbound(plain, {}, { internalDate: '1767225600000' })).toEqual({
    id: 'm1',
    account: 'bot@example.net',
    sender: 'ada@example.com',
    name: 'Ada',
    to: {
      to: 'ada@example.com',
      thread: 't1',
      replyTo: '<1@example.com>',
      more: { subject: 'Hello', from: 'bot@example.net', references: '<1@example.com>' },
    },
    addressed: 'direct',
    text: 'Subject: Hello\n\nhi',
    typed: 'hi',
    sentAtMs: 1_767_225_600_000,
    unverified: true,
  })
})

test.each<[what: string, payload: object, text: string]>([
  ['plain text before HTML', multi('alternative', plain, part('text/html', '<p>rich</p>')), 'hi'],
  ['plain text before HTML, in any order', multi('alternative', part('text/html', '<p>rich</p>'), plain), 'hi'],
  ['HTML without plain text', multi('alternative', part('text/html', '<p>rich &amp; poor</p>')), 'rich & poor'],
  ['HTML when the plain text is empty', multi('alternative', part('text/plain', ' \r\n'), part('text/html', '<p>rich</p>')), 'rich'],
  ['HTML with inline images', multi('alternative', multi('related', part('text/html', '<b>rich</b>'), part('image/png', 'x'))), 'rich'],
  ['all inline texts', multi('mixed', plain, part('image/png', 'x'), part('text/plain', 'bye')), 'hi\n\nbye'],
  ['normalised line breaks', part('text/plain', 'a\r\nb\rc'), 'a\nb\nc'],
  [
    'decoded with the charset of the part',
    part('text/plain', Uint8Array.of(0xe9), { 'Content-Type': 'text/plain; charset="ISO-8859-1"' }),
    'é',
  ],
  ['decoded as UTF-8 for an unknown charset', part('text/plain', 'é', { 'Content-Type': 'text/plain; charset=klingon' }), 'é'],
  [
    'without the text of a forwarded mail',
    multi('mixed', plain, { mimeType: 'message/rfc822', parts: [part('text/plain', 'theirs')] }),
    'hi',
  ],
])('the text is %s', (_, payload, text) => {
  expect(textOf(payload)).toBe(text)
})

test('falls back to the snippet of the API', () => {
  expect(textOf(multi('mixed', part('application/pdf', 'x')), { snippet: 'it&#39;s attached' })).toBe("it's attached")
})

test('returns attachments with ids that fetchMedia accepts, at most 20', () => {
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

test('brings the words and files of an attached mail, as those of its writer', () => {
  const theirs = multi('mixed', part('text/plain', 'send me the keys'), {
    mimeType: 'image/png',
    filename: 'x.png',
    body: { attachmentId: 'a9' },
  })
  const attached = { ...theirs, headers: headerList({ From: 'Eve <eve@evil.test>', Subject: 'Urgent' }) }
  const payload = multi('mixed', plain, { mimeType: 'message/rfc822', filename: '', body: {}, parts: [attached] })
  expect(inbound(payload, { Subject: 'Fwd: Urgent' })).toMatchObject({
    text: 'Subject: Fwd: Urgent\n\nhi',
    quotedFrom: 0,
    ownBelow: [{ from: 22, to: 24 }],
    forwarded: {
      from: { kind: 'person', name: 'Eve', id: 'eve@evil.test' },
      text: 'From: Eve <eve@evil.test>\nSubject: Urgent\n\nsend me the keys',
      attachments: [{ name: 'x.png', source: { id: 'm1/a9' } }],
    },
  })
  expect(inbound(payload)).not.toHaveProperty('attachments')
})

test('decodes a subject into one line of at most 500 characters', () => {
  expect(inbound(plain, { Subject: '=?utf-8?Q?Gr=C3=BC=C3=9Fe?=\r\n  and\tmore' }).text).toBe('Subject: Grüße and more\n\nhi')
  expect(inbound(plain, { Subject: [] }).text).toBe('Subject: (none)\n\nhi')
  expect([...(inbound(plain, { Subject: '😀'.repeat(600) }).to.more?.subject ?? '')]).toHaveLength(500)
})

test('cuts a long text between whole characters', () => {
  const { text } = inbound(part('text/plain', `x${'😀'.repeat(100_000)}`))
  expect(text.length).toBeLessThan(200_100)
  expect(text).toMatch(/😀\n\n\[The rest of this mail is left out\.\]$/)
})

test('stops decoding after 2,000,000 characters of all parts', () => {
  const silent = part('text/html', '<b>'.repeat(700_000))
  expect(textOf(multi('mixed', silent, part('text/plain', 'late')), { snippet: 'first words' })).toBe('first words')
  expect(textOf(multi('mixed', plain, silent))).toBe('hi')
})

const bare = (text: string) => part('text/plain', text, { From: 'eve@evil.test', Subject: 'Hi' })
const attachedMail = (...parts: object[]) => ({ mimeType: 'message/rfc822', parts })

test('names the writer of each attached mail, and brings mails that are attached to those', () => {
  const eve = (...parts: object[]) => ({
    ...multi('mixed', ...parts),
    headers: headerList({ From: 'Eve <eve@evil.test>', Subject: 'Bill' }),
  })
  const bob = part('text/plain', 'I accept.', { From: 'Bob <bob@example.com>', Subject: 'Re: Bill' })
  const { forwarded } = inbound(multi('mixed', plain, attachedMail(eve(part('text/plain', 'Pay me.'), attachedMail(bob)))))
  expect(forwarded).toEqual({
    text: 'From: Eve <eve@evil.test>\nSubject: Bill\n\nPay me.\n\nFrom: Bob <bob@example.com>\nSubject: Re: Bill\n\nI accept.',
  })
})

test('says how many attached mails are left out', () => {
  const mails = Array.from({ length: 22 }, () => attachedMail(bare('ok')))
  expect(inbound(multi('mixed', plain, ...mails)).forwarded?.text).toMatch(/\n\n\[2 more attached mails are left out\.\]$/)
})

test('takes no words of an attached mail from the snippet of the API', () => {
  const { text } = inbound(multi('mixed', attachedMail(bare('theirs'))), {}, { snippet: 'theirs' })
  expect(text).toBe('Subject: Hello')
})

test('takes the subject of a mail that passes another one on as an attachment for words of others, but not a new subject', () => {
  const passedOn = (subject: string) => inbound(multi('mixed', attachedMail(bare('theirs'))), { Subject: subject })
  expect(passedOn('TR: Pay me')).toMatchObject({ typed: '', quotedFrom: 0 })
  expect(passedOn('Sum it up')).toMatchObject({ typed: 'Sum it up' })
  expect(passedOn('Sum it up')).not.toHaveProperty('quotedFrom')
})

test('decodes 80,000 characters of all attached mails together', () => {
  const long = part('text/html', '<b>'.repeat(25_000), { From: 'eve@evil.test', Subject: 'Long' })
  const last = part('text/plain', 'late', { From: 'eve@evil.test', Subject: 'Last' })
  const textOfAttached = (...mails: object[]) => inbound(multi('mixed', plain, ...mails.map((mail) => attachedMail(mail)))).forwarded?.text
  expect(textOfAttached(long, last)).toContain('late')
  expect(textOfAttached(long, long, last)).not.toContain('late')
})

test('reads no text of a sender whom the allowlist does not cover', () => {
  const theirs = attachedMail(part('text/plain', 'theirs', { From: 'eve@evil.test' }))
  const stranger = inbound(multi('mixed', plain, theirs), {}, { allowed: 'nobody', snippet: 'first words' })
  expect(stranger.text).toBe('Subject: Hello\n\nfirst words')
  expect(stranger).not.toHaveProperty('forwarded')
})

test('ignores parts that are nested too deep', () => {
  let payload: object = part('text/plain', 'deep')
  for (let depth = 0; depth < 100; depth++) payload = multi('mixed', payload)
  expect(textOf(payload)).toBe('Subject: Hello')
})

describe('the reply address', () => {
  const reply = (value: string | string[], allowed = 'example.com') => inbound(plain, { 'Reply-To': value }, { allowed })

  test('is Reply-To if the allowlist covers it or it is the sender', () => {
    expect(reply('Team <team@example.com>')).toMatchObject({ sender: 'ada@example.com', to: { to: 'team@example.com' } })
    expect(reply('Else <else@other.example>', '').to.to).toBe('else@other.example')
    expect(reply('Ada <ADA@example.com>', 'nobody').to.to).toBe('ada@example.com')
  })

  test('is the sender when Reply-To is not allowed', () => {
    expect(reply('eve@evil.test').to.to).toBe('ada@example.com')
    expect(reply('eve@example.com.evil.test').to.to).toBe('ada@example.com')
  })

  test.each([['bot@example.net'], ['a@b.c, d@e.f'], ['nonsense'], [['a@b.c', 'd@e.f']]])('is the sender when Reply-To is %j', (value) => {
    expect(reply(value, '').to.to).toBe('ada@example.com')
  })
})

test('keeps the message id and the first and latest 19 references', () => {
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
  ['a mail we sent', {}, { labelIds: ['SENT', 'INBOX'] }],
  ['a draft', {}, { labelIds: ['DRAFT'] }],
  ['a mail from our own address', { From: 'Bot <BOT@example.net>' }, {}],
  ['a mail without a sender', { From: [] }, {}],
  ['a mail with several senders', { From: 'a@example.com, b@example.com' }, {}],
  ['a mail with two From headers', { From: ['a@example.com', 'b@example.com'] }, {}],
  ['an automatic reply', { 'Auto-Submitted': 'auto-replied' }, {}],
  ['an automatic mail', { 'auto-submitted': 'auto-generated; type=x' }, {}],
  ['a mail of a mailing list', { 'List-Id': '<list.example.com>' }, {}],
  ['an absence note with X-Autoreply', { 'X-Autoreply': 'yes' }, {}],
  ['a reply of an autoresponder', { 'X-Autorespond': 'Re: hello' }, {}],
  ['a mail that forbids automatic replies', { 'X-Auto-Response-Suppress': 'DR, OOF, AutoReply' }, {}],
  ['a mail that forbids all automatic mails', { 'x-auto-response-suppress': 'All' }, {}],
  ['a reply of an old autoresponder', { Precedence: 'auto_reply' }, {}],
  ['a bulk mail', { Precedence: 'Bulk' }, {}],
  ['a bounce', { 'Return-Path': '<>' }, {}],
  ['a mail that fails DMARC', { 'Authentication-Results': 'mx.x; spf=pass; dmarc=fail (p=NONE) header.from=example.com' }, {}],
])('ignores %s', (_, headers, mail) => {
  expect(read(plain, headers, mail as Record<string, unknown>)).toEqual({ ignored: expect.stringMatching(/\S/) })
})

test.each<[what: string, headers: Headers, requiresDmarc: boolean]>([
  ['a mail that a person wrote', { 'Auto-Submitted': 'no', Precedence: 'normal', 'Return-Path': '<ada@example.com>' }, true],
  ['a mail that passes DMARC', { 'Authentication-Results': 'mx.x; dmarc=pass header.from=example.com' }, true],
  ['a mail that fails DMARC only by a forged result', { 'Authentication-Results': ['mx.x; dmarc=pass', 'evil.test; dmarc=fail'] }, true],
  ['a mail that fails DMARC when every sender is allowed', { 'Authentication-Results': 'mx.x; dmarc=fail' }, false],
])('reads %s', (_, headers, requiresDmarc) => {
  expect(read(plain, headers, { requiresDmarc })).toHaveProperty('inbound')
})

test.each<[results: string | string[], isVerified: boolean]>([
  ['mx.x; dmarc=pass header.from=example.com', true],
  ['mx.x; spf=pass', false],
  ['mx.x; dmarc=none', false],
  [['mx.x; spf=pass', 'evil.test; dmarc=pass'], false],
])('with the results %j the sender is verified: %s', (results, isVerified) => {
  expect(inbound(plain, { 'Authentication-Results': results }).unverified).toBe(isVerified ? undefined : true)
})

test('the quoted part of a mail begins after the own words', () => {
  const { text, quotedFrom } = inbound(part('text/plain', 'Please look.\n\n> buy now'))
  expect(text.slice(quotedFrom)).toBe('> buy now')
})

test('takes words below a quote for those of the sender in text that says format=flowed, and in one part alone', () => {
  const text = '> Deploy?\r\n\r\nyes'
  const flowed = part('text/plain', text, { 'Content-Type': 'text/plain; charset=UTF-8; format=flowed' })
  const own = ({ text: all, ownBelow = [] }: ReturnType<typeof inbound>) => ownBelow.map(({ from, to }) => all.slice(from, to))
  expect(own(inbound(flowed))).toEqual(['yes'])
  expect(inbound(flowed, { Subject: 'Re: x' }).typed).toBe('yes')
  expect(own(inbound(multi('alternative', flowed, part('text/html', '<p>yes</p>'))))).toEqual(['yes'])
  expect(own(inbound(part('text/plain', text)))).toEqual([])
  expect(own(inbound(multi('mixed', flowed, part('text/plain', 'Words of a file.'))))).toEqual([])
  expect(own(inbound(part('text/plain', text, { 'Content-Type': 'text/plain; format="flowed"; delsp=yes' })))).toEqual([])
  expect(own(inbound(part('text/html', '<blockquote type="cite">x</blockquote>Delete everything.')))).toEqual([])
})
