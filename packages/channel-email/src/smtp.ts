/** Sends one mail over one connection to an SMTP server (RFC 5321), and tells whether the server has it. */
import { AppError, type Clock, withoutSecrets } from '@sluice/sdk'
import { type Login, plainResponse, tokenResponse } from './credentials.ts'
import type { MailServer } from './settings.ts'
import { Wire } from './wire.ts'

export interface SmtpOptions {
  readonly server: MailServer
  readonly clock: Clock
  readonly login: Login
  /** The domain that the client greets with. */
  readonly domain: string
}

export interface Envelope {
  readonly from: string
  readonly to: string
}

/** The answer to one command. */
interface Reply {
  readonly code: number
  readonly text: string
  /** The enhanced status code (RFC 3463), such as `5.1.1`; empty without one. */
  readonly status: string
}

/** The server does not accept the login. */
export class LoginRefused extends AppError {
  constructor(text: string) {
    super('unavailable', text)
  }
}

const NAME = 'the SMTP server'
const REPLY_MS = 60_000
/** A server may check a whole mail before it answers. RFC 5321 asks for ten minutes, but a send ends after one. */
const ACCEPT_MS = 55_000
const REPLY_BYTES_MAX = 65_536
const REASON_CHARS_MAX = 300
/** Answers that mean "later", whatever their first digit: 5.4.5 is the limit of a day at Gmail, and 4.7 includes greylisting. */
const LIMIT = /\b(?:4\.5\.3|4\.7\.\d{1,3}|5\.4\.5)\b|\brate limit|\btoo many (?:mails|messages|recipients)\b/i
const LIMIT_SECS = 300
const DAILY_SECS = 3600

export class Smtp {
  readonly #wire: Wire
  readonly #clock: Clock
  readonly #login: Login
  #buffered = ''
  #lines: string[] = []
  #waiting: { resolve(reply: Reply): void; reject(error: unknown): void } | undefined
  #extensions: ReadonlyMap<string, string> = new Map()

  private constructor(wire: Wire, { clock, login }: SmtpOptions) {
    this.#wire = wire
    this.#clock = clock
    this.#login = login
    wire.onBytes((bytes) => this.#take(bytes))
    void wire.closed.then((error) => this.#waiting?.reject(error))
  }

  /**
   * Connects, encrypts the connection and logs in. Throws `unavailable`, and `LoginRefused` if only the operator or another token
   * can help. The connection breaks when `signal` aborts.
   */
  static async open(options: SmtpOptions, signal: AbortSignal): Promise<Smtp> {
    const { server, clock, domain } = options
    const wire = await Wire.open(server, NAME, clock, signal)
    const smtp = new Smtp(wire, options)
    try {
      smtp.#expect(await smtp.#reply(REPLY_MS), 220)
      await smtp.#greet(domain)
      if (server.security === 'starttls') await smtp.#startTls(domain)
      await smtp.#logIn()
      return smtp
    } catch (error) {
      wire.destroy('ended')
      // The server has not looked at the mail, so its refusal is not final.
      throw error instanceof AppError && error.code === 'invalid_request' ? new AppError('unavailable', error.message) : error
    }
  }

  /**
   * Sends a mail to one recipient. Throws `unavailable` and `rate_limited` if the server does not have it and may take it later,
   * `invalid_request` if it never will, and `upstream` if it may have it.
   */
  async send({ from, to }: Envelope, mail: string): Promise<void> {
    const bytes = Buffer.from(dotStuffed(mail))
    this.#checkSize(bytes.length)
    const isUtf8 = /[^\x20-\x7e]/.test(`${from}${to}`)
    if (isUtf8 && !this.#extensions.has('SMTPUTF8')) throw new AppError('invalid_request', 'The SMTP server accepts only ASCII addresses')
    const size = this.#extensions.has('SIZE') ? ` SIZE=${bytes.length}` : ''
    this.#expect(await this.#command(`MAIL FROM:<${from}>${size}${isUtf8 ? ' SMTPUTF8' : ''}`), 250)
    this.#expect(await this.#command(`RCPT TO:<${to}>`), 250, 251)
    this.#expect(await this.#command('DATA'), 354)
    await this.#wire.write(bytes)
    // Without the final dot the server must drop the mail, so until here it certainly does not have it.
    if (this.#wire.signal.aborted) throw await this.#wire.closed
    this.#expect(await this.#finish(), 250)
  }

  /** Ends the connection. */
  quit(): void {
    void this.#wire.write('QUIT\r\n')
    this.#wire.end()
  }

  async #finish(): Promise<Reply> {
    try {
      const reply = this.#reply(ACCEPT_MS)
      void this.#wire.write('.\r\n')
      return await reply
    } catch {
      throw new AppError('upstream', 'The connection to the SMTP server broke before it confirmed the mail')
    }
  }

  #checkSize(length: number): void {
    const max = Number(this.#extensions.get('SIZE') ?? 0)
    if (max > 0 && length > max) throw new AppError('invalid_request', `The mail has ${length} bytes, and the SMTP server accepts ${max}`)
  }

  async #greet(domain: string): Promise<void> {
    const reply = await this.#command(`EHLO ${domain}`)
    if (reply.code >= 500) this.#expect(await this.#command(`HELO ${domain}`), 250)
    else this.#expect(reply, 250)
    const lines = reply.code === 250 ? reply.text.split('\n').slice(1) : []
    this.#extensions = new Map(
      lines.map((line) => {
        const [name = '', ...rest] = line.trim().split(' ')
        return [name.toUpperCase(), rest.join(' ').toUpperCase()]
      }),
    )
  }

  async #startTls(domain: string): Promise<void> {
    if (!this.#extensions.has('STARTTLS')) throw new LoginRefused('The SMTP server does not offer STARTTLS, without which nothing is sent')
    this.#expect(await this.#command('STARTTLS'), 220)
    // Bytes that came before the encryption could be of an attacker.
    if (this.#buffered !== '' || this.#lines.length > 0)
      throw new AppError('unavailable', 'The SMTP server sent data before the encryption')
    await this.#wire.startTls()
    await this.#greet(domain)
  }

  async #logIn(): Promise<void> {
    const mechanisms = (this.#extensions.get('AUTH') ?? '').split(' ')
    const reply = await this.#authenticate(mechanisms)
    if (reply.code === 235) return
    const said = describe(reply, this.#secrets())
    if (reply.code >= 400 && reply.code < 500) throw later(reply, `The SMTP server refuses the login for now: ${said}`)
    throw new LoginRefused(`The SMTP server refuses the login: ${said}`)
  }

  async #authenticate(mechanisms: readonly string[]): Promise<Reply> {
    const login = this.#login
    if (login.kind === 'token') {
      const reply = await this.#command(`AUTH XOAUTH2 ${tokenResponse(login)}`)
      // The reason of the refusal comes as a challenge.
      return reply.code === 334 ? this.#command('') : reply
    }
    if (mechanisms.includes('PLAIN') || !mechanisms.includes('LOGIN')) return this.#command(`AUTH PLAIN ${plainResponse(login)}`)
    const asked = await this.#command('AUTH LOGIN')
    if (asked.code !== 334) return asked
    const named = await this.#command(Buffer.from(login.username).toString('base64'))
    return named.code === 334 ? this.#command(Buffer.from(login.secret.reveal()).toString('base64')) : named
  }

  /** Throws the error for a reply with another code. */
  #expect(reply: Reply, ...codes: readonly number[]): void {
    if (codes.includes(reply.code)) return
    const said = `The SMTP server answered ${describe(reply, this.#secrets())}`
    if (LIMIT.test(`${reply.status} ${reply.text}`)) throw later(reply, said, true)
    // 530 and 535 ask for a login, which the operator can correct.
    if (reply.code < 500 || [530, 534, 535, 538].includes(reply.code)) throw later(reply, said)
    throw new AppError('invalid_request', said)
  }

  #secrets(): readonly string[] {
    const { secret } = this.#login
    return [secret.reveal(), plainResponse(this.#login), tokenResponse(this.#login)]
  }

  #command(line: string): Promise<Reply> {
    const reply = this.#reply(REPLY_MS)
    void this.#wire.write(`${line}\r\n`)
    return reply
  }

  /** Resolves to the next reply. Throws `unavailable` when the connection ends first. */
  async #reply(limitMs: number): Promise<Reply> {
    const { promise, resolve, reject } = Promise.withResolvers<Reply>()
    this.#waiting = { resolve, reject }
    if (this.#wire.signal.aborted) void this.#wire.closed.then(reject)
    this.#deliver()
    const over = new AbortController()
    void this.#clock.sleep(limitMs, over.signal).then(() => {
      if (!over.signal.aborted) this.#wire.destroy('it did not answer in time')
    })
    return promise.finally(() => {
      over.abort()
      this.#waiting = undefined
    })
  }

  #take(bytes: Buffer): void {
    this.#buffered += bytes.toString('latin1')
    if (this.#buffered.length > REPLY_BYTES_MAX) return void this.#wire.destroy('its reply is too long')
    const lines = this.#buffered.split('\n')
    this.#buffered = lines.pop() ?? ''
    this.#lines.push(...lines.map((line) => line.replace(/\r$/, '')))
    if (this.#lines.length > REPLY_BYTES_MAX) return void this.#wire.destroy('its reply is too long')
    this.#deliver()
  }

  /** Hands over a reply whose last line has arrived: `250 text`, while `250-text` continues. */
  #deliver(): void {
    const last = this.#lines.findIndex((line) => !/^\d{3}-/.test(line))
    if (last < 0 || !this.#waiting) return
    const lines = this.#lines.splice(0, last + 1)
    const [, code] = /^(\d{3})(?: |$)/.exec(lines.at(-1) ?? '') ?? []
    if (code === undefined) return void this.#wire.destroy('its reply has no code')
    const texts = lines.map((line) => line.slice(4))
    const [status = ''] = /^[245]\.\d{1,3}\.\d{1,3}\b/.exec(texts.at(-1) ?? '') ?? []
    this.#waiting.resolve({ code: Number(code), text: texts.join('\n'), status })
  }
}

/** The text of the server is shown to operators. */
const describe = ({ code, text }: Reply, secrets: readonly string[]): string =>
  withoutSecrets(`${code} ${text.replace(/[^\x20-\x7e]+/g, ' ')}`, secrets).slice(0, REASON_CHARS_MAX)

function later({ code }: Reply, said: string, isLimit = false): AppError {
  if (!isLimit) return new AppError('unavailable', said)
  return new AppError('rate_limited', said, { retryAfterSecs: code >= 500 ? DAILY_SECS : LIMIT_SECS })
}

/** A line that begins with a dot gets a second one, and the text ends with a line end (RFC 5321, section 4.5.2). */
const dotStuffed = (mail: string): string => `${mail.replace(/^\./gm, '..')}${mail.endsWith('\r\n') ? '' : '\r\n'}`
