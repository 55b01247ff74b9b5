/** The channel behind Postfix with real DKIM and DMARC verification, and its replies through Postfix. Needs root. */
import { execFile } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { promisify } from 'node:util'
import { systemClock } from '@sluice/kit'
import type { Address, Channel, Host, Inbound } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { startListening } from '@sluice/testkit/listening'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { createTransport } from 'nodemailer'
import PostalMime, { type Email } from 'postal-mime'
import * as v from 'valibot'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { installedProgram } from '../../../qa/src/debian-program.ts'
import { emailSection } from './config.ts'
import feature from './index.ts'
import { DOVECOT_PASSWORD, type Dovecot, prepareDovecot } from './testing/dovecot.ts'
import { MESSAGE_BYTES_MAX, type Postfix, startPostfix } from './testing/postfix.ts'

const run = promisify(execFile)
const PROGRAMS = ['usr/sbin/dovecot', 'usr/sbin/postfix', 'usr/sbin/opendkim', 'usr/sbin/opendmarc', 'usr/bin/swaks', 'usr/bin/unshare']
const FOUND = await Promise.all(PROGRAMS.map(installedProgram))
const [DOVECOT] = FOUND
const CAN_RUN = process.getuid?.() === 0 && FOUND.every((program) => program !== undefined)
const ID = 'mx.example.net'
const NEVER = new AbortController().signal
const fixture = (name: string): string => new URL(`../fixtures/${name}`, import.meta.url).pathname
const trusted = getCACertificates()
const soon = (check: () => void | Promise<void>) => vi.waitFor(check, { timeout: 30_000, interval: 30 })
const dkim = generateKeyPairSync('rsa', { modulusLength: 2048 })
const PRIVATE_KEY = dkim.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const PUBLIC_KEY = dkim.publicKey.export({ type: 'spki', format: 'der' }).toString('base64')

let dovecot: Dovecot
let postfix: Postfix
const closing: (() => Promise<void> | void)[] = []
const atEnd: (() => Promise<void> | void)[] = []

beforeAll(async () => {
  if (!CAN_RUN || !DOVECOT) return
  const folder = await mkdtemp(join(tmpdir(), 'sluice-postfix-'))
  atEnd.push(() => rm(folder, { recursive: true, force: true }))
  const keys = { key: fixture('localhost-key.pem'), cert: fixture('localhost-cert.pem') }
  dovecot = await prepareDovecot({ program: DOVECOT, folder, mailboxes: ['bot', 'ada'], keys })
  atEnd.push(() => dovecot.stop())
  await dovecot.start()
  const key = `v=DKIM1; k=rsa; p=${PUBLIC_KEY}`
  postfix = await startPostfix({
    folder,
    mail: join(folder, 'mail'),
    mailboxes: { 'bot@example.net': 'bot', 'ada@example.com': 'ada' },
    authSocket: dovecot.authSocket,
    keys,
    authservId: ID,
    zone: {
      's1._domainkey.example.com': key,
      's1._domainkey.evil.example': key,
      's1._domainkey.no-policy.example': key,
      '_dmarc.example.com': 'v=DMARC1; p=none',
      '_dmarc.evil.example': 'v=DMARC1; p=none',
    },
  })
  atEnd.push(() => postfix.stop())
  setDefaultCACertificates([...trusted, readFileSync(keys.cert, 'utf8')])
}, 120_000)
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})
afterAll(async () => {
  for (const close of atEnd.splice(0).toReversed()) await close()
  setDefaultCACertificates(trusted)
})

describe.skipIf(!CAN_RUN)('Postfix with opendkim and opendmarc', { timeout: 180_000 }, () => {
  test('only a mail with a valid signature of its own domain is by a sender of the allowlist', async () => {
    const { received, logs } = await bot({ allowed_senders: ['*'] })
    await signed('example.com', { from: 'Ada <ada@example.com>', text: 'signed' })
    await signed('evil.example', { from: 'Ada <ada@example.com>', text: 'signed by another domain' })
    await signed('no-policy.example', { from: 'eve@no-policy.example', text: 'signed without a policy' })
    const forged = [`--header`, `Authentication-Results: ${ID}; dmarc=pass header.from=example.com`]
    await swaks('--from', 'ada@example.com', '--h-From', 'Ada <ada@example.com>', '--body', 'forged', ...forged)
    await soon(() => expect(received).toHaveLength(4))
    const senders = Object.fromEntries(received.map(({ typed, sender }) => [typed, sender]))
    expect(senders).toEqual({
      signed: 'ada@example.com',
      'signed by another domain': 'unverified:ada@example.com',
      // The topmost header has the result of DMARC alone, which for this domain is `none`.
      'signed without a policy': 'unverified:eve@no-policy.example',
      forged: 'unverified:ada@example.com',
    })
    expect(logs()).not.toContain('mail cannot be read')
  })

  test.each([
    ['starttls', 'submission'],
    ['tls', 'submissions'],
  ] as const)('a reply goes out by %s, stays in the thread, and carries files', async (security, service) => {
    const { channel, received } = await bot({ smtp_security: security, smtp_port: postfix.ports[service], from_name: 'Böt "B"' })
    const question = await signed('example.com', { from: 'Ada <ada@example.com>', subject: 'Grüße', text: `question by ${security}` })
    await soon(() => expect(received).toHaveLength(1))
    const to = received[0]?.to as Address
    const picture = Buffer.from(Array.from({ length: 70_000 }, (_, at) => (at * 31) % 256))
    const attachments = [{ kind: 'image', name: 'Übersicht "1".png', mime: 'image/png', source: { bytes: picture } }] as const
    const text = `Antwort: 😀\n.\n..dots\n${'x'.repeat(2000)}\nFrom here`
    const { id } = await channel.send(to, { text, clientId: `c-${security}`, attachments }, NEVER)
    const answer = await arrived('ada', id)
    expect(answer).toMatchObject({
      subject: 'Re: Grüße',
      messageId: id,
      inReplyTo: question,
      from: { name: 'Böt "B"', address: 'bot@example.net' },
    })
    expect(answer.text?.replaceAll('\r\n', '\n').trimEnd()).toBe(text)
    expect(answer.attachments).toMatchObject([{ filename: 'Übersicht "1".png', mimeType: 'image/png' }])
    expect(Buffer.from(answer.attachments[0]?.content as ArrayBuffer).equals(picture)).toBe(true)
    expect(answer.headers.find(({ key }) => key === 'auto-submitted')?.value).toBe('auto-replied')
    await signed('example.com', { from: 'ada@example.com', subject: 'Re: Grüße', text: 'thanks', inReplyTo: id })
    await soon(() => expect(received).toHaveLength(2))
    expect(received[1]).toMatchObject({ inReplyTo: id, to: { thread: to.thread }, typed: 'thanks' })
  })

  test('refusals of the server are final, and a wrong login is not', async () => {
    const { channel } = await bot({})
    const send = (to: string, text = 'x') => channel.send({ to }, { text, clientId: 'c' }, NEVER)
    await expect(send('nobody@example.com')).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(/550 5\.1\.1/),
    })
    await expect(send('ada@example.com', 'x'.repeat(MESSAGE_BYTES_MAX))).rejects.toMatchObject({ code: 'invalid_request' })
    const { channel: wrong } = await bot({ password: 'wrong-password-01' }, 'down')
    const error = await wrong.send({ to: 'ada@example.com' }, { text: 'x', clientId: 'c' }, NEVER).catch((reason: Error) => reason)
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringMatching(/refuses the login: 535 5\.7\.8/) })
    expect(String((error as Error).message)).not.toContain('wrong-password')
  })

  test('doctor finds nothing wrong', async () => {
    const section = v.parse(emailSection.schema, sectionFor({}))
    const findings = (await feature.build(botHost(), section).check?.(NEVER)) ?? []
    expect(findings.map(({ status }) => status)).toEqual(['ok', 'ok', 'ok'])
  })
})

const botHost = (): Host & { readonly logs: readonly object[] } => ({
  ...testHost({ fetch, keyValue: memoryKeyValue() }),
  clock: systemClock,
})

const sectionFor = (section: object) => ({
  imap_host: 'localhost',
  imap_port: dovecot.ports.tls,
  smtp_host: 'localhost',
  smtp_port: postfix.ports.submission,
  username: 'bot@example.net',
  password: DOVECOT_PASSWORD,
  authserv_id: ID,
  allowed_senders: ['ada@example.com'],
  ...section,
})

async function bot(section: object, state: 'ok' | 'down' = 'ok'): Promise<{ channel: Channel; received: Inbound[]; logs(): string }> {
  const host = botHost()
  const [channel] = feature.build(host, v.parse(emailSection.schema, sectionFor(section))).channels ?? []
  if (!channel) throw new Error('The section builds no channel.')
  const received: Inbound[] = []
  const listening = startListening(channel, host, async (inbound) => void received.push(inbound))
  closing.push(() => listening.stop())
  await soon(() => expect(listening.health.state).toBe(state))
  return { channel, received, logs: () => JSON.stringify(host.logs) }
}

/** Sends a mail to the bot that is signed by a domain. Returns its id. */
async function signed(domain: string, mail: { from: string; text: string; subject?: string; inReplyTo?: string }): Promise<string> {
  const transport = createTransport({ host: '127.0.0.1', port: postfix.ports.mx, secure: false, ignoreTLS: true })
  const key = { domainName: domain, keySelector: 's1', privateKey: PRIVATE_KEY }
  const { messageId } = await transport.sendMail({ to: 'bot@example.net', dkim: key, references: mail.inReplyTo ?? [], ...mail })
  transport.close()
  return messageId
}

const swaks = (...args: string[]) => run('swaks', ['--server', `127.0.0.1:${postfix.ports.mx}`, '--to', 'bot@example.net', ...args])

/** Resolves to the mail with this id in a mailbox. */
async function arrived(name: string, id: string): Promise<Email> {
  let found: Email | undefined
  await soon(async () => {
    const folder = join(dovecot.maildir(name), 'new')
    for (const file of await readdir(folder)) {
      const mail = await PostalMime.parse(await readFile(join(folder, file)))
      if (mail.messageId === id) found = mail
    }
    expect(found).toBeDefined()
  })
  if (!found) throw new Error('the mail has not arrived')
  return found
}
