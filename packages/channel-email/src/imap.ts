/** A client of one IMAP server (RFC 3501, RFC 2177): one command at a time, over a connection that is logged in. */
import { signalScope, withoutTrailing } from '@sluice/kit'
import { AppError, type Clock, errorText } from '@sluice/sdk'
import { type Login, plainResponse, tokenResponse } from './credentials.ts'
import { type ImapResponse, ResponseSplitter } from './imap-responses.ts'
import { type ImapValue, parseValues, textOf } from './imap-values.ts'
import type { MailServer } from './settings.ts'
import { Wire } from './wire.ts'

export interface ImapOptions {
  readonly server: MailServer
  readonly clock: Clock
  /** The largest answer to one command, in bytes of literals. */
  readonly bytesMax: number
}

export interface Folder {
  readonly uidValidity: string
  /** The UID that the next message will have at least. */
  readonly uidNext: number
}

/** The data of a FETCH response by their names in upper case. */
export type Fetched = ReadonlyMap<string, ImapValue>

/** The server refused a command. `code` is its response code, such as `AUTHENTICATIONFAILED`. */
export class ImapRefusal extends Error {
  override readonly name = 'ImapRefusal'
  readonly code: string

  constructor(text: string, code: string) {
    super(text)
    this.code = code
  }
}

interface Command {
  readonly tag: string
  onData(response: ImapResponse): void
  /** Called when the server waits for more of the command. */
  onContinue(text: string): void
  resolve(text: string): void
  reject(error: unknown): void
}

interface CommandOptions {
  readonly onData?: (response: ImapResponse) => void
  readonly onContinue?: (text: string) => void
  /** The time without any answer after which the connection is dead. Default: a minute. */
  readonly silentMs?: number
}

const NAME = 'the IMAP server'
const COMMAND_MS = 60_000
const IDLE_END_MS = 30_000
const GREETING = '*greeting'
const REASON_CHARS_MAX = 200

export class Imap {
  readonly #wire: Wire
  readonly #clock: Clock
  readonly #splitter: ResponseSplitter
  #command: Command | undefined
  #commands = 0
  #capabilities: ReadonlySet<string> | undefined
  #hasChanged = false
  /** Ends the wait for a change. */
  #onChange: (() => void) | undefined
  #lastBytesMs: number
  /** The reason that the server gave when it closed the connection. */
  #farewell = ''
  /** The server knows the client without a login. */
  #isLoggedIn = false
  #refusesIdle = false

  private constructor(wire: Wire, { clock, bytesMax }: ImapOptions) {
    this.#wire = wire
    this.#clock = clock
    this.#splitter = new ResponseSplitter(bytesMax)
    this.#lastBytesMs = clock.monotonicMs()
    void wire.closed.then((error) => {
      this.#onChange?.()
      this.#command?.reject(
        this.#farewell ? new AppError('unavailable', `The IMAP server closed the connection: ${this.#farewell}`) : error,
      )
    })
  }

  /** Connects, and encrypts the connection. Throws `unavailable`. It breaks when `signal` aborts. */
  static async open(options: ImapOptions, signal: AbortSignal): Promise<Imap> {
    const { server, clock } = options
    const wire = await Wire.open(server, NAME, clock, signal)
    const imap = new Imap(wire, options)
    try {
      const greeting = imap.#begin(GREETING, {})
      wire.onBytes((bytes) => imap.#take(bytes))
      await imap.#inTime(greeting, COMMAND_MS)
      if (server.security === 'starttls') await imap.#startTls()
      return imap
    } catch (error) {
      wire.destroy('ended')
      throw error
    }
  }

  /** Aborts when the connection has closed. */
  get signal(): AbortSignal {
    return this.#wire.signal
  }

  /** Throws `ImapRefusal` if the server does not accept the login. */
  async login(login: Login): Promise<void> {
    const capabilities = await this.#known()
    if (this.#isLoggedIn) return
    if (login.kind === 'token') await this.#authenticate('XOAUTH2', tokenResponse(login))
    else if (capabilities.has('AUTH=PLAIN')) await this.#authenticate('PLAIN', plainResponse(login))
    else if (capabilities.has('LOGINDISABLED'))
      throw new ImapRefusal('The server accepts no password on this connection', 'PRIVACYREQUIRED')
    else {
      this.#capabilities = undefined
      await this.#run(`LOGIN ${quoted(login.username)} ${quoted(login.secret.reveal())}`)
    }
    await this.#known()
    // Some servers refuse to open folders for a client that does not name itself (RFC 2971).
    if (await this.has('ID')) await this.#run('ID ("name" "sluice")').catch(ignoreRefusal)
  }

  async has(capability: string): Promise<boolean> {
    return (await this.#known()).has(capability)
  }

  /** Opens a folder without the right to change it, so that no message is marked as read. Throws `ImapRefusal`. */
  async examine(folder: string): Promise<Folder> {
    let uidValidity = ''
    let uidNext = 0
    let exists = 0
    const onData = ({ text }: ImapResponse): void => {
      uidValidity = /^OK \[UIDVALIDITY (\d{1,20})\]/i.exec(text)?.[1] ?? uidValidity
      uidNext = Number(/^OK \[UIDNEXT (\d{1,10})\]/i.exec(text)?.[1] ?? uidNext)
      exists = Number(/^(\d{1,10}) EXISTS/i.exec(text)?.[1] ?? exists)
    }
    await this.#run(`EXAMINE ${quoted(folderName(folder))}`, { onData })
    if (uidValidity === '') throw new ImapRefusal('The server does not number its messages (no UIDVALIDITY)', '')
    if (uidNext === 0) uidNext = exists === 0 ? 1 : Math.max(0, ...(await this.search('UID *'))) + 1
    return { uidValidity, uidNext }
  }

  /** Returns the UIDs that match, in ascending order. */
  async search(criteria: string): Promise<readonly number[]> {
    const found = new Set<number>()
    const onData = ({ text }: ImapResponse): void => {
      if (/^SEARCH\b/i.test(text)) for (const uid of text.match(/\d{1,10}/g) ?? []) found.add(Number(uid))
    }
    await this.#run(`UID SEARCH ${criteria}`, { onData })
    return [...found].toSorted((a, b) => a - b)
  }

  /** Returns data of one message; undefined if it does not exist. Throws `ImapRefusal`. */
  async fetch(uid: number, items: string): Promise<Fetched | undefined> {
    const data = new Map<string, ImapValue>()
    const onData = ({ text, literals }: ImapResponse): void => {
      if (!/^\d{1,10} FETCH /i.test(text)) return
      const [, , list] = parseValues(text, literals)
      const values = Array.isArray(list) ? (list as readonly ImapValue[]) : []
      const entries = new Map<string, ImapValue>()
      for (let at = 0; at + 1 < values.length; at += 2) entries.set(textOf(values[at]).toUpperCase(), values[at + 1] ?? null)
      // A server may report changes of other messages at any time.
      if (textOf(entries.get('UID')) === String(uid)) for (const [name, value] of entries) data.set(name, value)
    }
    await this.#run(`UID FETCH ${uid} (UID ${items})`, { onData })
    return data.size > 0 ? data : undefined
  }

  /** Forgets the changes that were reported so far. */
  forgetChanges(): void {
    this.#hasChanged = false
  }

  /**
   * Resolves when the folder may have new messages, after `ms` at the latest, or when `signal` aborts. The server has then shown that the
   * connection works. Throws when it does not.
   */
  async waitForChange(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#hasChanged || signal.aborted) return
    if (this.#refusesIdle || !(await this.has('IDLE'))) {
      await this.#untilChange(ms, signal)
      if (!signal.aborted) await this.#run('NOOP', { silentMs: IDLE_END_MS })
      return
    }
    let isIdle = false
    const onContinue = (): void => {
      isIdle = true
      void this.#untilChange(ms, signal).then(() => this.#wire.write('DONE\r\n'))
    }
    await this.#run('IDLE', { onContinue, silentMs: ms + IDLE_END_MS }).catch(ignoreRefusal)
    this.#refusesIdle = !isIdle
  }

  /** Says goodbye, and ends the connection. */
  logOut(): void {
    void this.#wire.write(`Z${++this.#commands} LOGOUT\r\n`)
    this.#wire.end()
  }

  /** Ends the connection at once. */
  destroy(): void {
    this.#wire.destroy('ended')
  }

  async #startTls(): Promise<void> {
    if (this.#isLoggedIn) throw new AppError('unavailable', 'The IMAP server does not let the connection be encrypted')
    await this.#run('STARTTLS').catch((error: unknown) => {
      throw error instanceof ImapRefusal ? new AppError('forbidden', `The IMAP server refuses STARTTLS: ${error.message}`) : error
    })
    // Bytes that came before the encryption could be of an attacker.
    if (this.#splitter.isPartial) throw new AppError('unavailable', 'The IMAP server sent data before the encryption')
    this.#capabilities = undefined
    await this.#wire.startTls()
  }

  async #known(): Promise<ReadonlySet<string>> {
    if (!this.#capabilities) await this.#run('CAPABILITY')
    this.#capabilities ??= new Set()
    return this.#capabilities
  }

  /** An error of XOAUTH2 comes as a challenge, which an empty line answers. */
  async #authenticate(mechanism: string, response: string): Promise<void> {
    const isInitial = await this.has('SASL-IR')
    let isSent = isInitial
    const onContinue = (): void => {
      void this.#wire.write(isSent ? '\r\n' : `${response}\r\n`)
      isSent = true
    }
    this.#capabilities = undefined
    await this.#run(`AUTHENTICATE ${mechanism}${isInitial ? ` ${response}` : ''}`, { onContinue })
  }

  async #untilChange(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#hasChanged || this.signal.aborted) return
    const change = Promise.withResolvers<void>()
    this.#onChange = change.resolve
    using scope = signalScope([signal, this.signal])
    await Promise.race([change.promise, this.#clock.sleep(ms, scope.signal)])
    this.#onChange = undefined
  }

  /** Runs a command. Returns the text of its completion. Throws `ImapRefusal`, or the reason why the connection closed. */
  #run(line: string, options: CommandOptions = {}): Promise<string> {
    const tag = `A${++this.#commands}`
    const outcome = this.#begin(tag, options)
    void this.#wire.write(`${tag} ${line}\r\n`)
    return this.#inTime(outcome, options.silentMs ?? COMMAND_MS)
  }

  #begin(tag: string, { onData = () => undefined, onContinue = () => undefined }: CommandOptions): Promise<string> {
    if (this.#command) throw new Error('an IMAP command runs already')
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    this.#command = { tag, onData, onContinue, resolve, reject }
    if (this.signal.aborted) void this.#wire.closed.then(reject)
    return promise.finally(() => {
      this.#command = undefined
    })
  }

  /** Breaks the connection when no byte comes for `silentMs`. */
  async #inTime(outcome: Promise<string>, silentMs: number): Promise<string> {
    const over = new AbortController()
    const watch = async (): Promise<void> => {
      this.#lastBytesMs = this.#clock.monotonicMs()
      for (let leftMs = silentMs; leftMs > 0 && !over.signal.aborted; ) {
        await this.#clock.sleep(leftMs, over.signal)
        leftMs = silentMs - (this.#clock.monotonicMs() - this.#lastBytesMs)
      }
      if (!over.signal.aborted) this.#wire.destroy('it did not answer in time')
    }
    void watch()
    return outcome.finally(() => over.abort())
  }

  #take(bytes: Buffer): void {
    this.#lastBytesMs = this.#clock.monotonicMs()
    try {
      for (const response of this.#splitter.take(bytes)) this.#respond(response)
    } catch (error) {
      const command = this.#command
      command?.reject(new UnreadableResponse(errorText(error)))
      this.#wire.destroy(errorText(error))
    }
  }

  #respond(response: ImapResponse): void {
    const { tag, text } = response
    const command = this.#command
    if (tag === '+') return void command?.onContinue(text)
    if (tag !== '*') return void this.#complete(tag, text)
    if (command?.tag === GREETING) return void this.#greet(command, text)
    this.#learn(text)
    if (/^\d{1,10} (?:EXISTS|RECENT)/i.test(text)) this.#change()
    if (/^BYE\b/i.test(text)) this.#farewell = text.slice(4, REASON_CHARS_MAX)
    command?.onData(response)
  }

  #greet(command: Command, text: string): void {
    this.#learn(text)
    this.#isLoggedIn = /^PREAUTH\b/i.test(text)
    if (/^(?:OK|PREAUTH)\b/i.test(text)) command.resolve(text)
    else command.reject(new AppError('unavailable', `The IMAP server refuses the connection: ${text.slice(0, REASON_CHARS_MAX)}`))
  }

  #complete(tag: string, text: string): void {
    const command = this.#command
    if (command?.tag !== tag) return
    this.#learn(text)
    const [, status = '', code = '', rest = ''] = /^(OK|NO|BAD)\b ?(?:\[([A-Z-]+)(?: [^\]]{0,200})?\] ?)?(.*)$/i.exec(text) ?? []
    if (status.toUpperCase() === 'OK') command.resolve(text)
    else command.reject(new ImapRefusal(rest.slice(0, REASON_CHARS_MAX) || status || 'no reason', code.toUpperCase()))
  }

  /** Capabilities come as an answer, or as a code of another response. */
  #learn(text: string): void {
    const list = /^CAPABILITY (.*)$/i.exec(text)?.[1] ?? /^(?:OK|PREAUTH) \[CAPABILITY ([^\]]*)\]/i.exec(text)?.[1]
    if (list !== undefined) this.#capabilities = new Set(list.toUpperCase().split(' '))
  }

  #change(): void {
    this.#hasChanged = true
    this.#onChange?.()
  }
}

/** A response that this client cannot read. The message that was asked for may be the cause. */
export class UnreadableResponse extends Error {
  override readonly name = 'UnreadableResponse'
}

function ignoreRefusal(error: unknown): void {
  if (!(error instanceof ImapRefusal)) throw error
}

/** A quoted string of RFC 3501. The configuration contains no control characters. */
const quoted = (text: string): string => `"${text.replace(/["\\]/g, '\\$&')}"`

/** Encodes a name with characters beyond ASCII (RFC 3501, section 5.1.3). */
export const folderName = (name: string): string =>
  name
    .replaceAll('&', '&-')
    .replace(
      /[^\x20-\x7e]+/g,
      (part) => `&${withoutTrailing(Buffer.from(part, 'utf16le').swap16().toString('base64'), '=').replaceAll('/', ',')}-`,
    )
