/** Sending through the fake: what arrives, and which outcome each fault has. */
import { type Address, AppError, type Attachment, type Outbound } from '@sluice/sdk'
import fc from 'fast-check'
import PostalMime, { type Email } from 'postal-mime'
import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { emailSection } from './config.ts'
import { composeReply } from './send.ts'
import { settingsOf } from './settings.ts'
import { type Bench, startBench } from './testing/bench.ts'
import { EMAIL_ADDRESS, EMAIL_PASSWORD } from './testing/fake.ts'
import { sectionOf } from './testing/section.ts'

const NEVER = new AbortController().signal
const TO: Address = {
  to: 'ada@example.com',
  thread: '0123456789abcdef',
  replyTo: '<2@example.com>',
  more: { subject: 'Grüße', references: '<1@example.com> <2@example.com>' },
}

let bench: Bench
beforeEach(async () => {
  bench = await startBench()
})
afterEach(() => bench.close())

/** Sends a message. Returns the id or the error. */
const send = (
  message: Partial<Outbound> = {},
  { to = TO, signal = NEVER, changes = {} }: { to?: Address; signal?: AbortSignal; changes?: object } = {},
) =>
  bench
    .channel(changes)
    .send(to, { text: 'hello', clientId: 'c-1', ...message }, signal)
    .catch((error: unknown) => error as AppError)

const sentMail = (): Promise<Email> => {
  const [mail, another] = bench.fake.accepted
  if (!mail || another) throw new Error(`${bench.fake.accepted.length} mails were accepted`)
  return PostalMime.parse(mail.raw)
}
const header = (mail: Email, name: string): string | undefined => mail.headers.find(({ key }) => key === name)?.value

describe('a mail', () => {
  test('is addressed and threaded, and marked as automatic', async () => {
    const sent = await send({ text: 'Zeile 1\n.\n..\nFrom me\n' }, { changes: { from_name: 'Der Bot' } })
    const mail = await sentMail()
    expect(bench.fake.accepted[0]).toMatchObject({ from: EMAIL_ADDRESS, to: ['ada@example.com'] })
    expect(mail).toMatchObject({
      from: { address: EMAIL_ADDRESS, name: 'Der Bot' },
      to: [{ address: 'ada@example.com' }],
      subject: 'Re: Grüße',
      inReplyTo: '<2@example.com>',
      references: '<1@example.com> <2@example.com>',
    })
    expect(mail.messageId).toMatch(/^<[\da-f]{32}\.0123456789abcdef@example\.net>$/)
    expect(sent).toEqual({ id: mail.messageId })
    expect(header(mail, 'auto-submitted')).toBe('auto-replied')
    expect(mail.text?.replaceAll('\r\n', '\n')).toBe('Zeile 1\n.\n..\nFrom me\n')
  })

  test('has the same id in each attempt, and another one for another message', async () => {
    const ids = [await send(), await send(), await send({ clientId: 'c-2' })].map((sent) => ('id' in sent ? sent.id : sent))
    expect(ids[0]).toBe(ids[1])
    expect(ids[2]).not.toBe(ids[0])
  })

  test.each([
    ['sets the subject', 'Subject: Your order\n\nIt was sent.', 'Your order', 'It was sent.'],
    ['sets the subject with an umlaut', 'subject:  Grüße\nHallo', 'Grüße', 'Hallo'],
    ['is no subject without a text', 'Subject:\nx', 'Re: Grüße', 'Subject:\nx'],
    ['is no subject further down', 'x\nSubject: y', 'Re: Grüße', 'x\nSubject: y'],
  ])('a first line %s', async (_, text, subject, body) => {
    await send({ text })
    const mail = await sentMail()
    expect(mail.subject).toBe(subject)
    expect(mail.text?.replaceAll('\r\n', '\n').trimEnd()).toBe(body)
  })

  test('that answers none has the default subject', async () => {
    await send({}, { to: { to: 'ada@example.com' }, changes: { default_subject: 'From the machine' } })
    const mail = await sentMail()
    expect([mail.subject, header(mail, 'auto-submitted'), mail.inReplyTo]).toEqual(['From the machine', 'auto-generated', undefined])
  })

  test('carries files byte for byte', async () => {
    const bytes = Buffer.from(Array.from({ length: 200_000 }, (_, at) => (at * 31) % 256))
    const names = ['plain.png', 'Übersicht 😀.pdf', 'a"b\\c;d.txt', 'x'.repeat(150), '']
    const attachments = names.map((name): Attachment => ({ kind: 'file', name, mime: 'application/pdf', source: { bytes } }))
    await send({ attachments })
    const mail = await sentMail()
    expect(mail.attachments.map(({ filename }) => filename)).toEqual([...names.slice(0, -1), 'attachment'])
    for (const { content, mimeType } of mail.attachments) {
      expect(Buffer.from(content as ArrayBuffer).equals(bytes)).toBe(true)
      expect(mimeType).toBe('application/pdf')
    }
    expect(mail.text?.trim()).toBe('hello')
  })

  test('that is longer than the server accepts is not sent', async () => {
    const attachments: Attachment[] = [{ kind: 'file', name: 'x', source: { bytes: Buffer.alloc(31_000_000) } }]
    expect(await send({ attachments })).toMatchObject({ code: 'invalid_request', message: expect.stringContaining('40000000') })
    expect(bench.fake.requests).toEqual([])
  })

  test('no value adds a header, a recipient or a command', async () => {
    const nasty = fc.string({
      unit: fc.constantFrom('a', '\r', '\n', ' ', ':', '<', '>', '@', ',', '\0', '"', 'Bcc: x@evil.test', '.', 'é', '\u2028'),
      maxLength: 15,
    })
    const settings = settingsOf(v.parse(emailSection.schema, sectionOf(bench.fake)))
    await fc.assert(
      fc.asyncProperty(nasty, nasty, nasty, nasty, nasty, nasty, async (subject, references, replyTo, thread, text, name) => {
        const to = { to: 'ada@example.com', thread, replyTo, more: { subject, references } }
        const attachments: Attachment[] = [{ kind: 'file', name, mime: name, source: { bytes: Buffer.from('x') } }]
        const composed = await composeReply(to, { text, clientId: name, attachments }, { ...settings, name: name || undefined }, 0)
        const mail = composed.mail.toString()
        const end = mail.indexOf('\r\n\r\n')
        expect(mail.slice(0, end)).not.toMatch(/[^\r]\n|\r[^\n]|\0/)
        const parsed = await PostalMime.parse(mail)
        expect(new Set(parsed.headers.map(({ key }) => key))).toSatisfy((keys: Set<string>) => !keys.has('bcc') && keys.size <= 12)
        expect(parsed.to).toMatchObject([{ address: 'ada@example.com' }])
        expect(parsed.attachments).toHaveLength(1)
      }),
      { numRuns: 300, seed: 7 },
    )
  })

  test.each([
    '',
    'ada',
    'ada@example.com\r\nRCPT TO:<x@evil.test>',
    'ada@example.com> BODY=8BITMIME',
    'a@b, c@d',
    'unverified:ada@example.com',
  ])('is not sent to %j', async (to) => {
    expect(await send({}, { to: { to } })).toMatchObject({ code: 'invalid_request' })
    expect(bench.fake.requests).toEqual([])
  })

  test.each([
    [false, 'ä@example.com', 'ä@example.com'],
    [true, 'ä@example.com', undefined],
  ])('to an address beyond ASCII needs a server that takes it (%s)', async (hideSMTPUTF8, to, arrives) => {
    await bench.close()
    bench = await startBench({ smtp: { hideSMTPUTF8 } })
    const sent = await send({}, { to: { to } })
    if (arrives === undefined) expect(sent).toMatchObject({ code: 'invalid_request', message: expect.stringContaining('ASCII') })
    else expect((await sentMail()).to).toMatchObject([{ address: arrives }])
  })
})

describe('the outcome', () => {
  test.each([
    ['550 5.1.1 No such user', 'invalid_request'],
    ['553 5.7.1 Not you', 'invalid_request'],
    ['552 5.2.2 Mailbox full', 'invalid_request'],
    ['450 4.2.0 Greylisted', 'unavailable'],
    ['450 4.7.1 Greylisted', 'rate_limited'],
    ['451 4.3.0 Local error', 'unavailable'],
    ['452 4.5.3 Too many recipients', 'rate_limited'],
    ['550 5.4.5 Daily sending quota exceeded', 'rate_limited'],
    ['421 4.3.2 Shutting down', 'unavailable'],
  ])('of the answer %j to a recipient is %s', async (answer, code) => {
    bench.fake.refused.set('ada@example.com', answer)
    expect(await send()).toMatchObject({ code, message: expect.stringContaining(answer.slice(0, 3)) })
    expect(bench.fake.accepted).toEqual([])
  })

  test.each([
    [429, 'rate_limited'],
    [503, 'unavailable'],
  ])('of a mail that is refused for now (%i) is %s', async (status, code) => {
    bench.fake.fail({ fault: 'status', status })
    expect(await send()).toMatchObject({ code })
    expect(await send()).toHaveProperty('id')
    expect(bench.fake.accepted).toHaveLength(1)
  })

  test.each(['reset', 'lost'] as const)('of a connection that breaks after the mail (%s) is unknown', async (fault) => {
    bench.fake.fail({ fault })
    expect(await send()).toMatchObject({ code: 'upstream' })
  })

  test('of a connection that breaks within the mail is that it was not sent', async () => {
    const attachments: Attachment[] = [{ kind: 'file', name: 'x', source: { bytes: Buffer.alloc(8_000_000) } }]
    bench.fake.cutDataAfter(100_000)
    expect(await send({ attachments })).toMatchObject({ code: 'unavailable' })
    expect(bench.fake.accepted).toEqual([])
  })

  test('of a server that is away is that it was not sent', async () => {
    const channel = bench.channel()
    await bench.fake.close()
    await expect(channel.send(TO, { text: 'x', clientId: 'c' }, NEVER)).rejects.toMatchObject({ code: 'unavailable' })
  })

  test('of an abort while the server decides is unknown, and comes at once', async () => {
    bench.fake.fail({ fault: 'hang' })
    const abort = new AbortController()
    const sending = send({}, { signal: abort.signal })
    await expect.poll(() => bench.fake.requests.length).toBe(1)
    abort.abort()
    expect(await sending).toMatchObject({ code: 'upstream' })
  })

  test('of an abort before anything was said is that it was not sent', async () => {
    const abort = new AbortController()
    abort.abort()
    expect(await send({}, { signal: abort.signal })).toBeInstanceOf(AppError)
    expect(bench.fake.requests).toEqual([])
  })

  test('of a refused login is that it was not sent, and names no secret', async () => {
    const error = await send({}, { changes: { password: 'another-password-01' } })
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringContaining('535') })
    expect(JSON.stringify([error, String(error), bench.host.logs])).not.toMatch(/another-password-01|email-password-01/)
    expect(EMAIL_PASSWORD).toBe('email-password-01')
  })
})

describe('the login', () => {
  const again = async (options: Parameters<typeof startBench>[0]) => {
    await bench.close()
    bench = await startBench(options)
  }
  const withoutAuth = { smtp: { disabledCommands: ['AUTH', 'STARTTLS'], authOptional: true } }

  test('is left out with smtp_auth = false', async () => {
    await again(withoutAuth)
    expect(await send({}, { changes: { smtp_auth: false } })).toHaveProperty('id')
    expect(bench.fake.accepted).toHaveLength(1)
  })

  test('of a server that offers none names the key that leaves it out', async () => {
    await again(withoutAuth)
    expect(await send()).toMatchObject({ code: 'unavailable', message: expect.stringContaining('smtp_auth = false') })
    expect(bench.fake.accepted).toEqual([])
  })

  test('that a server asks for without success is not a final refusal', async () => {
    expect(await send({}, { changes: { smtp_auth: false } })).toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('530'),
    })
  })

  test('is another one with smtp_username, and no error names its password', async () => {
    await again({ smtpLogin: { username: 'relay', password: 'relay-password-01' } })
    const changes = { smtp_username: 'relay', smtp_password: 'relay-password-01' }
    expect(await send({}, { changes })).toHaveProperty('id')
    expect(await send()).toMatchObject({ code: 'unavailable', message: expect.stringContaining('535') })
    const error = await send({}, { changes: { ...changes, smtp_password: 'wrong-password-01' } })
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringContaining('535') })
    expect(JSON.stringify([error, String(error), bench.host.logs])).not.toMatch(/-password-01/)
    expect(bench.fake.accepted).toHaveLength(1)
  })
})
