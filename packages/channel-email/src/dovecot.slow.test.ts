/** The channel on a Dovecot of Debian: IDLE, TLS, STARTTLS, XOAUTH2, mails of another composer, restarts, and renumbered mails. */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer, type Server } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
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

const FOUND = await debianProgram({ packages: ['dovecot-core', 'dovecot-imapd'], program: 'usr/sbin/dovecot' })
const PASSWORD = 'dovecot-password-01'
const ADDRESS = 'bot@example.net'
const fixture = (name: string): string => new URL(`../fixtures/${name}`, import.meta.url).pathname
/** Dovecot refuses to read mails as root. */
const USER = process.getuid?.() === 0 ? { name: 'nobody', group: 'nogroup', login: 'www-data', id: 65_534 } : undefined

interface Dovecot {
  readonly ports: { readonly plain: number; readonly tls: number }
  /** The folder in which new mails appear. */
  readonly inbox: string
  start(): Promise<void>
  stop(): Promise<void>
}

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
  dovecot = await prepare(FOUND.path, FOUND.env, FOUND.root)
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
    for (const folder of ['new', 'cur']) for (const file of await readdir(join(dovecot.inbox, folder))) expect(file).not.toMatch(/:2,.*S/)
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
    await put(Buffer.concat([Buffer.from(raw({ text: '', type: `text/plain; charset=${charset}` }).trimEnd() + '\r\n\r\n'), body]))
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

  test('when the server numbers its mails anew, only mails that were not read are read', async () => {
    const host = botHost()
    const first = await bot({}, 'ok', host)
    for (const text of ['one', 'two']) await put(raw({ text }))
    await soon(() => expect(first.received).toHaveLength(2))
    const before = await validity()
    await first.listening.stop()
    await dovecot.stop()
    for (const file of await readdir(dovecot.inbox))
      if (file.startsWith('dovecot')) await rm(join(dovecot.inbox, file), { recursive: true })
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
  password: PASSWORD,
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

/** Delivers a mail as a delivery agent does. Returns its file. */
async function put(mail: string | Buffer): Promise<string> {
  const name = `${Date.now()}.M${++mails}P${process.pid}.test`
  const temporary = join(dovecot.inbox, 'tmp', name)
  await writeFile(temporary, mail)
  if (USER) await chown(temporary, USER.id, USER.id)
  await rename(temporary, join(dovecot.inbox, 'new', name))
  return name
}

/** Marks a mail as read, as the mail program of a person does. */
const open = (name: string): Promise<void> => rename(join(dovecot.inbox, 'new', name), join(dovecot.inbox, 'cur', `${name}:2,S`))

async function validity(): Promise<number> {
  const list = await readFile(join(dovecot.inbox, 'dovecot-uidlist'), 'utf8')
  return Number(/^3 V(\d+) /.exec(list)?.[1])
}

async function prepare(program: string, env: Readonly<Record<string, string>>, root: string): Promise<Dovecot> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-dovecot-'))
  atEnd.push(() => rm(folder, { recursive: true, force: true }))
  const inbox = join(folder, 'mail/bot')
  for (const name of ['new', 'cur', 'tmp']) await mkdir(join(inbox, name), { recursive: true })
  await chmod(folder, 0o755)
  if (USER)
    for (const name of ['mail', 'mail/bot', 'mail/bot/new', 'mail/bot/cur', 'mail/bot/tmp'])
      await chown(join(folder, name), USER.id, USER.id)
  const own = userInfo().username
  const { name = own, group = own, login = own } = USER ?? {}
  const ports = { plain: await freePort(), tls: await freePort() }
  const config = `
base_dir = ${folder}/run
log_path = ${folder}/log
libexec_dir = ${join(root, 'usr/lib/dovecot')}
mail_plugin_dir = ${join(root, 'usr/lib/dovecot/modules')}
protocols = imap
listen = 127.0.0.1
default_internal_user = ${name}
default_internal_group = ${group}
default_login_user = ${login}
first_valid_uid = 1
mail_location = maildir:${folder}/mail/%n
ssl = yes
ssl_cert = <${fixture('localhost-cert.pem')}
ssl_key = <${fixture('localhost-key.pem')}
auth_mechanisms = plain login xoauth2
disable_plaintext_auth = no
auth_failure_delay = 0
passdb {
  driver = static
  mechanisms = plain login
  args = password=${PASSWORD}
}
passdb {
  driver = oauth2
  mechanisms = xoauth2
  args = ${folder}/oauth2
}
userdb {
  driver = static
  args = uid=${name} gid=${group} home=${folder}/mail/%n allow_all_users=yes
}
service imap-login {
  chroot =
  inet_listener imap {
    port = ${ports.plain}
  }
  inet_listener imaps {
    port = ${ports.tls}
    ssl = yes
  }
}
service anvil {
  chroot =
}
`
  await writeFile(join(folder, 'dovecot.conf'), config)
  await writeFile(
    join(folder, 'oauth2'),
    `introspection_url = http://127.0.0.1:${tokens.port}/introspect?token=\nintrospection_mode = get\nusername_attribute = email\nactive_attribute = active\nactive_value = true\n`,
  )
  let child: ChildProcess | undefined
  const stop = async (): Promise<void> => {
    const running = child
    if (!running) return
    child = undefined
    const ended = new Promise((resolve) => running.once('close', resolve))
    running.kill('SIGTERM')
    await ended
    await soon(() => expect(reachable(ports.plain)).rejects.toThrow())
  }
  const start = async (): Promise<void> => {
    child = spawn(program, ['-F', '-c', join(folder, 'dovecot.conf')], { env: { ...process.env, ...env }, stdio: 'ignore' })
    await soon(() => reachable(ports.plain)).catch(async () => {
      throw new Error(`Dovecot does not run: ${await readFile(join(folder, 'log'), 'utf8').catch(() => '')}`)
    })
  }
  atEnd.push(stop)
  return { ports, inbox, start, stop }
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

const reachable = (port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve()
    })
    socket.once('error', reject)
  })

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
