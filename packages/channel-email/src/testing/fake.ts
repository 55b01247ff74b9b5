/** A mail provider on loopback: one mailbox by IMAP, and SMTP for the mails of the bot. */
import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { FakeProvider, ProviderFault, ProviderRequest } from '@sluice/testkit/fake-provider'
import { listenOnLoopback } from '@sluice/testkit/loopback-server'
import type { SMTPServerOptions } from 'smtp-server'
import { FakeImapConnection, type ImapState } from './fake-imap.ts'
import { type AcceptedMail, startFakeSmtp } from './fake-smtp.ts'
import { fieldOf, parseRaw } from './fake-structure.ts'

export type { AcceptedMail } from './fake-smtp.ts'

export const EMAIL_ADDRESS = 'bot@example.net'
export const EMAIL_PASSWORD = 'email-password-01'
export const AUTHSERV_ID = 'mx.example.net'

export interface EmailFakeOptions {
  readonly nowMs?: () => number
  readonly capabilities?: readonly string[]
  /** The accepted access token of XOAUTH2. */
  readonly token?: string
  /** `tls` for both servers from the start, `starttls` for both. Default: no encryption. */
  readonly security?: 'tls' | 'starttls'
  readonly keys?: { readonly key: string; readonly cert: string }
  /** The answer of the SMTP server at a limit. Default: `450 4.7.1`, after which a client waits for minutes. */
  readonly limitAnswer?: string
  /** The login of the SMTP server, if it is another one. */
  readonly smtpLogin?: { readonly username: string; readonly password: string }
  /** Further options of the SMTP server. */
  readonly smtp?: SMTPServerOptions
}

/** A mail that a person wrote. */
export interface Written {
  readonly from?: string
  readonly subject?: string
  readonly text?: string
  /** Further header lines, below the header lines of the server. */
  readonly headers?: readonly string[]
  /** Whether the server says that DMARC passed. Default: true. */
  readonly isVerified?: boolean
  readonly atMs?: number
}

export interface EmailFake extends FakeProvider {
  readonly imapPort: number
  readonly smtpPort: number
  readonly imap: ImapState
  readonly accepted: readonly AcceptedMail[]
  readonly refused: Map<string, string>
  /** How many clients have the folder open. */
  readonly selected: number
  readonly idle: number
  /** Delivers a mail. Returns its Message-ID. */
  write(mail: Written): string
  /** Delivers the bytes of a mail. */
  deliver(raw: Buffer | string, atMs?: number): void
  /** Renumbers all mails. */
  renumber(): void
  cutDataAfter(bytes: number): void
  /** Sends a line to all IMAP clients. */
  emit(line: string): void
  mute(): void
  changePassword(next: string): void
}

export const CAPABILITIES = ['SASL-IR', 'IDLE', 'ID', 'LITERAL+']

export async function startEmailFake({
  nowMs = Date.now,
  capabilities = CAPABILITIES,
  token,
  security,
  keys,
  smtp: smtpOptions,
  smtpLogin,
  limitAnswer = '450 4.7.1 Try again later',
}: EmailFakeOptions = {}): Promise<EmailFake> {
  const requests: ProviderRequest[] = []
  const faults: { fault: ProviderFault; left: number; matches: (request: ProviderRequest) => boolean }[] = []
  const connections = new Map<Socket, FakeImapConnection>()
  const login = { username: EMAIL_ADDRESS, password: EMAIL_PASSWORD, token }
  const imap: ImapState = {
    ...login,
    mails: [],
    uidValidity: 1000,
    folder: 'INBOX',
    capabilities,
    tls: security === 'starttls' ? keys : undefined,
    commands: [],
    cutFetchAfter: undefined,
    refuse: () => undefined,
  }
  const smtp = {
    ...login,
    ...smtpLogin,
    limitAnswer,
    accepted: [] as AcceptedMail[],
    refused: new Map<string, string>(),
    cutDataAfter: undefined as number | undefined,
    faultOf(request: ProviderRequest): ProviderFault | undefined {
      requests.push(request)
      const found = faults.find(({ matches }) => matches(request))
      if (found && --found.left === 0) faults.splice(faults.indexOf(found), 1)
      return found?.fault
    },
  }
  let isDown = false
  let nextUid = 1
  let mailNumber = 0
  const accept = (socket: Socket): void => {
    if (isDown) return void socket.destroy()
    connections.set(socket, new FakeImapConnection(socket, imap, security === 'tls'))
    socket.once('close', () => connections.delete(socket))
  }
  const isTls = security === 'tls' && keys !== undefined
  const server = isTls ? createTlsServer({ ...keys }, accept) : createServer(accept)
  const listening = await listenOnLoopback(server)
  const sender = await startFakeSmtp(smtp, {
    ...keys,
    ...smtpOptions,
    secure: isTls,
    allowInsecureAuth: security !== 'starttls',
    onConnect: (_session, callback) => (isDown ? void callback(new Error('closed')) : callback()),
  })
  const deliver = (raw: Buffer | string, atMs = nowMs()): void => {
    imap.mails.push({ uid: nextUid++, raw: Buffer.from(raw), atMs })
    for (const connection of connections.values()) connection.announce()
  }
  const all = (): FakeImapConnection[] => [...connections.values()]
  return {
    url: listening.url,
    imapPort: listening.port,
    smtpPort: sender.port,
    imap,
    requests,
    accepted: smtp.accepted,
    refused: smtp.refused,
    get selected() {
      return all().filter(({ isSelected }) => isSelected).length
    },
    get idle() {
      return all().filter(({ isIdle }) => isIdle).length
    },
    write({ from = 'ada@example.com', subject = 'hi', text = '', headers = [], isVerified = true, atMs = nowMs() }) {
      const id = `<${++mailNumber}.mail@example.com>`
      const domain = from.slice(from.lastIndexOf('@') + 1).replace('>', '')
      const lines = [
        `Return-Path: <${from}>`,
        `Authentication-Results: ${AUTHSERV_ID}; dmarc=${isVerified ? 'pass' : 'fail'} (p=reject) header.from=${domain}`,
        ...headers,
        `From: ${from}`,
        `To: ${EMAIL_ADDRESS}`,
        `Subject: ${subject}`,
        `Message-ID: ${id}`,
        `Date: ${new Date(atMs).toUTCString()}`,
        'Content-Type: text/plain; charset=utf-8',
        'Content-Transfer-Encoding: 8bit',
      ]
      deliver(`${lines.join('\r\n')}\r\n\r\n${text.replaceAll('\n', '\r\n')}\r\n`, atMs)
      return id
    },
    deliver,
    renumber() {
      imap.uidValidity += 1
      nextUid = 1
      imap.mails = imap.mails.map((mail) => ({ ...mail, uid: nextUid++ }))
    },
    cutDataAfter(bytes) {
      smtp.cutDataAfter = bytes
    },
    emit: (line) => all().forEach((connection) => void connection.emit(line)),
    mute: () => all().forEach((connection) => void connection.mute()),
    changePassword(next) {
      imap.password = next
      smtp.password = next
    },
    fail: (fault, { times = 1, matches = () => true } = {}) => void faults.push({ fault, left: times, matches }),
    cut(options = {}) {
      isDown = options.isDown ?? false
      for (const connection of all()) connection.reset()
      sender.reset()
    },
    async close() {
      const closed = Promise.all([listening.close(), sender.close()])
      for (const socket of connections.keys()) socket.destroy()
      await closed
    },
  }
}

/** The text of a mail that the bot sent, without its subject. */
export function textIn(raw: Buffer): string {
  const mail = parseRaw(raw)
  const part = mail.parts[0] ?? mail
  const isBase64 = fieldOf(part.header, 'content-transfer-encoding') === 'base64'
  return isBase64 ? Buffer.from(part.body.toString('latin1'), 'base64').toString() : part.body.toString()
}
