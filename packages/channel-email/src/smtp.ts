/** Sends one mail over one connection to an SMTP server (RFC 5321), and tells whether the server has it. */
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { AppError, type Clock, errorText, withoutSecrets } from '@sluice/sdk'
import SMTPConnection, { type SMTPConnectionCustomAuthHandler } from 'nodemailer/lib/smtp-connection'
import { type Login, plainResponse, tokenResponse } from './credentials.ts'
import { closedError, openSocket } from './open-socket.ts'
import type { MailServer } from './settings.ts'

export interface SmtpOptions {
  readonly server: MailServer
  readonly clock: Clock
  /** Without one, the client does not log in. */
  readonly login: Login | undefined
  /** The domain that the client greets with. */
  readonly domain: string
}

export interface Envelope {
  readonly from: string
  readonly to: string
}

/** An error of the library: `code` tells the step, and the reply of the server is there if that is the cause. */
interface Failure {
  readonly message: string
  readonly code?: string
  readonly command?: string
  readonly response?: string
  readonly responseCode?: number
}

/** The server does not accept the login. */
export class LoginRefused extends AppError {
  constructor(text: string) {
    super('unavailable', text)
  }
}

const NAME = 'the SMTP server'
/** Not `XOAUTH2`, in whose place the library takes another method of the server unless it may renew the token itself. */
const TOKEN_LOGIN = 'TOKEN'
/** A server may check a whole mail before it answers. RFC 5321 asks for ten minutes, but a send ends after one. */
const REPLY_MS = 55_000
const END_MS = 1000
const REPLY_BYTES_MAX = 65_536
const CHUNK_BYTES = 16_384
const REASON_CHARS_MAX = 300
/** Answers that mean "later", whatever their first digit: 5.4.5 is the limit of a day at Gmail, and 4.7 includes greylisting. */
const LIMIT = /\b(?:4\.5\.3|4\.7\.\d{1,3}|5\.4\.5)\b|\brate limit|\btoo many (?:mails|messages|recipients)\b/i
const LIMIT_SECS = 300
const DAILY_SECS = 3600

export class Smtp {
  readonly #connection: SMTPConnection
  readonly #clock: Clock
  readonly #secrets: readonly string[]
  readonly #ended = new AbortController()
  /** Rejects when the connection breaks or ends. */
  readonly #broken: Promise<never>
  #takesUtf8 = false

  private constructor(socket: Socket, { server, clock, login, domain }: SmtpOptions, signal: AbortSignal) {
    const { security, host, verifyTls } = server
    this.#connection = new SMTPConnection({
      connection: socket,
      secure: security === 'tls',
      secured: security === 'tls',
      ignoreTLS: security === 'none',
      host,
      tls: { rejectUnauthorized: verifyTls },
      name: domain,
      greetingTimeout: REPLY_MS,
      socketTimeout: REPLY_MS,
      socketCloseTimeout: 0,
      maxResponseSize: REPLY_BYTES_MAX,
      ...(login?.kind === 'token' && { customAuth: { [TOKEN_LOGIN]: tokenLogin(login) } }),
    })
    this.#clock = clock
    this.#secrets = login ? [login.secret.reveal(), plainResponse(login), tokenResponse(login)] : []
    const { promise, reject } = Promise.withResolvers<never>()
    promise.catch(() => undefined)
    this.#broken = promise
    const abort = (): void => {
      reject(closedError(NAME, 'aborted'))
      this.#connection.close()
    }
    this.#connection.on('error', reject)
    this.#connection.once('end', () => {
      signal.removeEventListener('abort', abort)
      this.#ended.abort()
      // The library may call the step that it ends after this event, and with a better reason.
      queueMicrotask(() => reject(closedError(NAME, 'ended')))
    })
    signal.addEventListener('abort', abort, { once: true })
  }

  /**
   * Connects, encrypts the connection and logs in. Throws `unavailable`, and `LoginRefused` if only the operator or another token
   * can help. The connection breaks when `signal` aborts.
   */
  static async open(options: SmtpOptions, signal: AbortSignal): Promise<Smtp> {
    const { server, clock, login } = options
    const smtp = new Smtp(await openSocket(server, NAME, clock, signal), options, signal)
    try {
      await smtp.#step((done) => smtp.#connection.connect(done)).catch((error) => smtp.#refuse(error))
      if (server.security === 'starttls' && !smtp.#connection.secure)
        throw new LoginRefused('The SMTP server does not offer STARTTLS, without which nothing is sent')
      smtp.#takesUtf8 = /^250[ -]SMTPUTF8\b/im.test(smtp.#connection.lastServerResponse || '')
      if (login) await smtp.#logIn(login)
      return smtp
    } catch (error) {
      smtp.#connection.close()
      throw error
    }
  }

  /**
   * Sends a mail to one recipient. Throws `unavailable` and `rate_limited` if the server does not have it and may take it later,
   * `invalid_request` if it never will, and `upstream` if it may have it.
   */
  async send({ from, to }: Envelope, mail: Buffer): Promise<void> {
    const isUtf8 = /[^\x20-\x7e]/.test(`${from}${to}`)
    if (isUtf8 && !this.#takesUtf8) throw new AppError('invalid_request', 'The SMTP server accepts only ASCII addresses')
    let isHandedOver = false
    const content = Readable.from(
      (function* () {
        for (let at = 0; at < mail.length; at += CHUNK_BYTES) yield mail.subarray(at, at + CHUNK_BYTES)
        isHandedOver = true
      })(),
    )
    try {
      await this.#step((done) => this.#connection.send({ from, to, size: mail.length }, content, done))
    } catch (error) {
      throw this.#outcome(error as Failure, isHandedOver)
    }
  }

  /** Ends the connection. */
  quit(): void {
    this.#connection.quit()
    void this.#clock.sleep(END_MS, this.#ended.signal).then(() => this.#connection.close())
  }

  #step(run: (done: (error?: unknown) => void) => void): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    run((error) => (error ? reject(error) : resolve()))
    return Promise.race([promise, this.#broken])
  }

  async #logIn(login: Login): Promise<void> {
    if (!this.#connection.allowsAuth)
      throw new LoginRefused('The SMTP server offers no login; if it takes mails without one, set channels_config.email.smtp_auth = false')
    const { username: user, kind, secret } = login
    const auth = { ...(kind === 'token' && { method: TOKEN_LOGIN }), user, credentials: { user, pass: secret.reveal() } }
    await this.#step((done) => this.#connection.login(auth, done)).catch((error: Failure) => {
      const { code, responseCode = 0, response } = error
      if (code !== 'EAUTH' || response === undefined) throw this.#lost(error)
      const said = this.#describe(response)
      if (responseCode >= 400 && responseCode < 500) throw later(response, `The SMTP server refuses the login for now: ${said}`)
      throw new LoginRefused(`The SMTP server refuses the login: ${said}`)
    })
  }

  /** Throws the error for a connection that could not be set up. The server has not looked at the mail, so no refusal is final. */
  #refuse(error: Failure): never {
    if (error.response !== undefined) throw later(error.response, `The SMTP server answered ${this.#describe(error.response)}`)
    throw this.#lost(error)
  }

  #outcome(error: Failure, isHandedOver: boolean): AppError {
    const { code, command, response, responseCode = 0 } = error
    const isAnswer = code === 'EENVELOPE' || code === 'EMESSAGE' || (!isHandedOver && response !== undefined)
    if (isAnswer && responseCode >= 400) return refusal(response ?? '', `The SMTP server answered ${this.#describe(response ?? '')}`)
    // The server takes a mail only after the line that ends it, which follows the last part.
    if (isHandedOver) return new AppError('upstream', 'The connection to the SMTP server broke before it confirmed the mail')
    if (code === 'EMESSAGE' && command === 'MAIL FROM')
      return new AppError('invalid_request', `The SMTP server takes no mail so long: ${error.message}`)
    return this.#lost(error)
  }

  #lost(error: unknown): AppError {
    if (error instanceof AppError) return error
    return closedError(NAME, withoutSecrets(errorText(error), this.#secrets).slice(0, REASON_CHARS_MAX))
  }

  /** The text of the server is shown to operators. */
  #describe(response: string): string {
    const text = response.replace(/\n\d{3}[ -]?/g, ' ').replace(/^(\d{3})-/, '$1 ')
    return withoutSecrets(text.replace(/[^\x20-\x7e]+/g, ' '), this.#secrets).slice(0, REASON_CHARS_MAX)
  }
}

/** The error for a reply that refuses the mail. */
function refusal(response: string, said: string): AppError {
  const code = Number(response.slice(0, 3))
  // 530 and 535 ask for a login, which the operator can correct.
  if (LIMIT.test(response) || code < 500 || [530, 534, 535, 538].includes(code)) return later(response, said)
  return new AppError('invalid_request', said)
}

function later(response: string, said: string): AppError {
  if (!LIMIT.test(response)) return new AppError('unavailable', said)
  return new AppError('rate_limited', said, { retryAfterSecs: response.startsWith('5') ? DAILY_SECS : LIMIT_SECS })
}

/** Logs in by XOAUTH2. The reason of a refusal comes as a challenge, and the refusal after an empty answer to it. */
const tokenLogin =
  (login: Login): SMTPConnectionCustomAuthHandler =>
  async ({ sendCommand }) => {
    const first = await sendCommand(`AUTH XOAUTH2 ${tokenResponse(login)}`)
    const last = first.status === 334 ? await sendCommand('') : first
    if (last.status !== 235) throw new Error('the token is refused')
  }
