/** The channel on a Dovecot of Debian: IDLE, TLS, STARTTLS, XOAUTH2, mails of another composer, restarts, and renumbered mails. */
import { readFileSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises'
import { createServer as createHttpServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { systemClock } from '@sluice/kit'
import type { Channel, Host, Inbound } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { type Listening, startListening } from '@sluice/testkit/listening'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import MailComposer from 'nodemailer/lib/mail-composer'
import * as v from 'valibot'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { debianProgram } from '../../../qa/src/debian-program.ts'
import { emailSection } from './config.ts'
import feature from './index.ts'
import { DOVECOT_PASSWORD, type Dovecot, prepareDovecot, putMail } from './testing/dovecot.ts'

const FOUND = await debianProgram({ packages: ['dovecot-core', 'dovecot-imapd'], program: 'usr/sbin/dovecot' })
const ADDRESS = 'bot@example.net'
const fixture = (name: string): string => new URL(`../fixtures/${name}`, import.meta.url).pathname
const inbox = (): string => dovecot.maildir('bot')
const soon = (check: () => void | Promise<void>, timeout = 20_000) => vi.waitFor(check, { timeout, interval: 20 })
const NEVER = new AbortController().signal
let dovecot: Dovecot
let tokens: { readonly server: Server; readonly port: number; accepted: string; issued: string[] }
const closing: (() => Promise<void> | void)[] = []
const atEnd: (() => Promise<void> | void)[] = []
const trusted = getCACertificates()

beforeAll(async () => {
  if ('missing' in FOUND) return
  tokens = await startTokenServer()
  const folder = await mkdtemp(join(tmpdir(), 'sluice-dovecot-'))
  atEnd.push(() => rm(folder, { recursive: true, force: true }))
  const introspection = `http://127.0.0.1:${tokens.port}/introspect?token=`
  const keys = { key: fixture('localhost-key.pem'), cert: fixture('localhost-cert.pem') }
  dovecot = await prepareDovecot({ program: FOUND, folder, mailboxes: ['bot'], keys, introspection })
  atEnd.push(() => dovecot.stop())
  await dovecot.start()
  setDefaultCACertificates([...trusted, readFileSync(fixture('localhost-cert.pem'), 'utf8')])
}, 120_000)
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})
afterAll(async () => {
  for (const close of atEnd.splice(0).toReversed()) await close()
  setDefaultCACertificates(trusted)
})

describe.skipIf('missing' in FOUND)('Dovecot', { timeout: 120_000 }, () => {
  test('announces a mail by IDLE, and nothing marks it as read', async () => {
    const { received, listening } = await bot()
    const startMs = performance.now()
    await put(raw({ subject: 'Grüße', text: 'hello\n.dots\n' }))
    await soon(() => expect(received).toHaveLength(1))
    expect(performance.now() - startMs).toBeLessThan(5000)
    expect(received[0]).toMatchObject({ sender: 'ada@example.com', text: 'Subject: Grüße\n\nhello\n.dots' })
    expect(listening.health.state).toBe('ok')
    for (const folder of ['new', 'cur']) for (const file of await readdir(join(inbox(), folder))) expect(file).not.toMatch(/:2,.*S/)
  })

  test.each([
    ['tls', 'localhost', undefined],
    ['starttls', 'localhost', undefined],
    ['tls', '127.0.0.1', /Hostname\/IP does not match/],
    ['starttls', '127.0.0.1', /Hostname\/IP does not match/],
  ])('%s with %s checks the certificate', async (security, host, problem) => {
    const port = security === 'tls' ? dovecot.ports.tls : dovecot.ports.plain
    const section = { imap_host: host, imap_port: port, imap_security: security }
    const { received, listening } = await bot(section, problem ? 'down' : 'ok')
    if (problem) return expect(listening.health.detail).toMatch(problem)
    await put(raw({ text: security }))
    await soon(() => expect(received.map(({ typed }) => typed)).toEqual([security]))
  })

  test('a wrong password is shown, and tried rarely', async () => {
    const { listening } = await bot({ password: 'wrong-password-01' }, 'down')
    expect(listening.health.detail).toMatch(/refuses the login \(is the password valid\?\): Authentication failed/)
    expect((listening.retryAtMs ?? 0) - systemClock.monotonicMs()).toBeGreaterThan(600_000)
  })

  test('access tokens are renewed by the refresh token, whose successor is kept', async () => {
    const host = botHost()
    const section = {
      password: undefined,
      client_id: 'client-1',
      refresh_token: 'refresh-1',
      token_url: `http://127.0.0.1:${tokens.port}/token`,
    }
    const { received } = await bot(section, 'ok', host)
    await put(raw({ text: 'by token' }))
    await soon(() => expect(received.at(-1)?.typed).toBe('by token'))
    expect(tokens.issued).toEqual(['refresh-1'])
    for (const close of closing.splice(0).toReversed()) await close()
    // A new process has no access token, and the first refresh token is spent.
    const again = await bot(section, 'ok', host)
    expect(tokens.issued).toEqual(['refresh-1', 'refresh-2'])
    expect(await host.secrets.get('refresh-token')).toBe('refresh-1\nrefresh-3')
    expect(again.listening.health.state).toBe('ok')
  })

  test('mails of another composer have their texts, and their attachments byte for byte', async () => {
    const { received, channel } = await bot()
    const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, at) => (at * 7919) % 256))
    const composed = await new MailComposer({
      from: 'Ada <ada@example.com>',
      to: ADDRESS,
      subject: 'Grüße 😀 '.repeat(20),
      messageId: '<composed@example.com>',
      text: 'Zeile mit Umlaut: ä\n\n-- \nAda',
      html: '<p>Zeile mit Umlaut: <b>ä</b></p>',
      textEncoding: 'quoted-printable',
      attachments: [
        { filename: 'Übersicht (für alle) 2026 – mit einem sehr langen Namen.pdf', content: bytes, contentType: 'application/pdf' },
        { filename: 'plain.txt', content: 'a text file' },
      ],
    })
      .compile()
      .build()
    await put(Buffer.concat([Buffer.from('Authentication-Results: mx.example.net; dmarc=pass header.from=example.com\r\n'), composed]))
    await soon(() => expect(received).toHaveLength(1))
    const [mail] = received
    expect(mail?.text).toBe(`Subject: ${'Grüße 😀 '.repeat(20).trim()}\n\nZeile mit Umlaut: ä\n\n-- \nAda`)
    expect(mail).toMatchObject({ id: '<composed@example.com>', typed: 'Zeile mit Umlaut: ä', sender: 'ada@example.com' })
    expect(mail?.attachments).toMatchObject([
      { kind: 'file', name: 'Übersicht (für alle) 2026 – mit einem sehr langen Namen.pdf', mime: 'application/pdf' },
      { kind: 'file', name: 'plain.txt', mime: 'text/plain' },
    ])
    const [pdf, text] = mail?.attachments ?? []
    if (!pdf || !text) throw new Error('the attachments are missing')
    expect(Buffer.from((await channel.fetchMedia?.(pdf, { bytesMax: 1_000_000, signal: NEVER }))?.bytes ?? []).equals(bytes)).toBe(true)
    expect(Buffer.from((await channel.fetchMedia?.(text, { bytesMax: 1000, signal: NEVER }))?.bytes ?? []).toString()).toBe('a text file')
    await expect(channel.fetchMedia?.(pdf, { bytesMax: 299_999, signal: NEVER })).rejects.toMatchObject({ code: 'too_large' })
  })

  test.each([
    ['iso-8859-1', Buffer.from('Grüße', 'latin1'), 'Grüße'],
    ['windows-1252', Buffer.from([0x80, 0x20, 0x93]), '€ “'],
    ['iso-2022-jp', Buffer.from('1b2442467c4b5c1b2842', 'hex'), '日本'],
    ['gb18030', Buffer.from('c4e3bac3', 'hex'), '你好'],
    ['koi8-r', Buffer.from('f0d2c9d7c5d4', 'hex'), 'Привет'],
    ['unknown-charset', Buffer.from('Grüße'), 'Grüße'],
  ])('a text in %s is decoded', async (charset, body, text) => {
    const { received } = await bot()
    await put(Buffer.concat([Buffer.from(`${raw({ text: '', type: `text/plain; charset=${charset}` }).trimEnd()}\r\n\r\n`), body]))
    await soon(() => expect(received.map(({ typed }) => typed)).toEqual([text]))
  })

  test('mails that arrive while the server or the channel is away are read once, also if a person has opened them', async () => {
    const host = botHost()
    const first = await bot({}, 'ok', host)
    await put(raw({ text: 'one' }))
    await soon(() => expect(first.received.map(({ typed }) => typed)).toEqual(['one']))
    await dovecot.stop()
    await soon(() => expect(first.listening.health.state).not.toBe('ok'))
    await put(raw({ text: 'two' }))
    await dovecot.start()
    await soon(() => expect(first.received.map(({ typed }) => typed)).toEqual(['one', 'two']))
    await first.listening.stop()
    await open(await put(raw({ text: 'three, opened' })))
    const second = await bot({}, 'ok', host)
    await soon(() => expect(second.received.map(({ typed }) => typed)).toEqual(['three, opened']))
  })

  test('when the UIDs of the server change, only mails that were not read are read', async () => {
    // The clocks of the two may differ by a minute, so mails that arrived in the minute before the first start may be read again.
    for (const folder of ['new', 'cur']) for (const file of await readdir(join(inbox(), folder))) await rm(join(inbox(), folder, file))
    const host = botHost()
    const first = await bot({}, 'ok', host)
    for (const text of ['one', 'two']) await put(raw({ text }))
    await soon(() => expect(first.received).toHaveLength(2))
    const before = await validity()
    await first.listening.stop()
    await dovecot.stop()
    for (const file of await readdir(inbox())) if (file.startsWith('dovecot')) await rm(join(inbox(), file), { recursive: true })
    await put(raw({ text: 'three' }))
    // The validity is the time in seconds.
    await soon(() => expect(Math.floor(Date.now() / 1000)).toBeGreaterThan(before), 5000)
    await dovecot.start()
    const second = await bot({}, 'ok', host)
    await soon(() => expect(second.received.map(({ typed }) => typed)).toEqual(['three']))
    expect(await validity()).not.toBe(before)
    await put(raw({ text: 'four' }))
    await soon(() => expect(second.received.map(({ typed }) => typed)).toEqual(['three', 'four']))
  })

  test('doctor logs in, and looks for the headers that vouch for senders', async () => {
    await put(raw({ text: 'x' }))
    const check = async (section: object) =>
      (await feature.build(botHost(), v.parse(emailSection.schema, { ...sectionFor(), ...section })).check?.(NEVER)) ?? []
    const [login, headers, smtp] = await check({})
    expect([login, headers]).toMatchObject([{ status: 'ok' }, { status: 'ok', detail: expect.stringContaining('authserv_id') }])
    expect(smtp).toMatchObject({ status: 'fail', fix: expect.stringContaining('smtp_host') })
    expect((await check({ authserv_id: 'another.example' }))[1]).toMatchObject({ status: 'warn' })
    expect((await check({ password: 'wrong-password-01' }))[0]).toMatchObject({ status: 'fail', fix: expect.stringContaining('password') })
    expect((await check({ imap_folder: 'Nowhere' }))[0]).toMatchObject({ status: 'fail', detail: expect.stringContaining('Nowhere') })
  })
})

const botHost = (): Host => ({ ...testHost({ fetch, keyValue: memoryKeyValue() }), clock: systemClock })

const sectionFor = () => ({
  imap_host: '127.0.0.1',
  imap_port: dovecot.ports.plain,
  imap_security: 'none',
  smtp_host: '127.0.0.1',
  smtp_port: 1,
  smtp_security: 'none',
  username: ADDRESS,
  password: DOVECOT_PASSWORD,
  authserv_id: 'mx.example.net',
  allowed_senders: ['ada@example.com'],
})

async function bot(
  section: object = {},
  state: 'ok' | 'down' = 'ok',
  host = botHost(),
): Promise<{ channel: Channel; received: Inbound[]; listening: Listening }> {
  const [channel] = feature.build(host, v.parse(emailSection.schema, { ...sectionFor(), ...section })).channels ?? []
  if (!channel) throw new Error('The section builds no channel.')
  const received: Inbound[] = []
  const listening = startListening(channel, host, async (inbound) => void received.push(inbound))
  closing.push(() => listening.stop())
  await soon(() => expect(listening.health.state).toBe(state))
  return { channel, received, listening }
}

let mails = 0
function raw({ subject = 'hi', text, type = 'text/plain; charset=utf-8' }: { subject?: string; text: string; type?: string }): string {
  return [
    'Authentication-Results: mx.example.net; dmarc=pass header.from=example.com',
    'From: Ada <ada@example.com>',
    `Subject: ${subject}`,
    `Message-ID: <${++mails}.${process.pid}@example.com>`,
    `Date: ${new Date().toUTCString()}`,
    'MIME-Version: 1.0',
    `Content-Type: ${type}`,
    '',
    text.replaceAll('\n', '\r\n'),
  ].join('\r\n')
}

const put = (mail: string | Buffer): Promise<string> => putMail(dovecot.maildir('bot'), mail)

/** Marks a mail as read, as the mail program of a person does. */
const open = (name: string): Promise<void> => rename(join(inbox(), 'new', name), join(inbox(), 'cur', `${name}:2,S`))

async function validity(): Promise<number> {
  const list = await readFile(join(inbox(), 'dovecot-uidlist'), 'utf8')
  return Number(/^3 V(\d+) /.exec(list)?.[1])
}

/** Issues access tokens, each with a new refresh token, and tells Dovecot which one is valid. */
async function startTokenServer(): Promise<typeof tokens> {
  const state = { accepted: '', issued: [] as string[] }
  const server = createHttpServer(async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://127.0.0.1')
    let body = ''
    for await (const piece of request) body += piece
    response.setHeader('content-type', 'application/json')
    if (url.pathname !== '/token') {
      const active = url.searchParams.get('token') === state.accepted
      return void response.end(JSON.stringify({ active: String(active), email: ADDRESS }))
    }
    const given = new URLSearchParams(body).get('refresh_token') ?? ''
    if (given !== `refresh-${state.issued.length + 1}`) {
      response.statusCode = 400
      return void response.end('{"error":"invalid_grant"}')
    }
    state.issued.push(given)
    state.accepted = `access-token-${state.issued.length}`
    response.end(JSON.stringify({ access_token: state.accepted, expires_in: 3600, refresh_token: `refresh-${state.issued.length + 1}` }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd.push(() => void server.close())
  return Object.assign(state, { server, port: (server.address() as AddressInfo).port })
}
