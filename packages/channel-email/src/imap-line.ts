/** The commands and responses of one IMAP connection (RFC 3501): one command at a time, and what the server says between them. */
import { AppError, type Clock, errorText } from '@sluice/sdk'
import { type ImapResponse, LINE_BYTES_MAX, ResponseSplitter } from './imap-responses.ts'
import type { MailServer } from './settings.ts'
import { Wire } from './wire.ts'

export interface ImapOptions {
  readonly server: MailServer
  readonly clock: Clock
  /** The most bytes of literals in the answer to one command. */
  readonly bytesMax: number
}

/** The server refused a command. `code` is its response code, such as `AUTHENTICATIONFAILED`. */
export class ImapRefusal extends Error {
  override readonly name = 'ImapRefusal'
  readonly code: string

  constructor(text: string, code: string) {
    super(text)
    this.code = code
  }
}

/** A response that this client cannot read. The message that was asked for may be the cause. */
export class UnreadableResponse extends Error {
  override readonly name = 'UnreadableResponse'
}

interface Command {
  readonly tag: string
  onData(response: ImapResponse): void
  /** Called when the server waits for more of the command. */
  onContinue(text: string): void
  resolve(text: string): void
  reject(error: unknown): void
}

export interface CommandOptions {
  readonly onData?: (response: ImapResponse) => void
  readonly onContinue?: (text: string) => void
  /** The time without any answer after which the connection is dead. Default: a minute. */
  readonly silentMs?: number
}

const NAME = 'the IMAP server'
const COMMAND_MS = 60_000
const GREETING = '*greeting'
const REASON_CHARS_MAX = 200

export class ImapLine {
  readonly #wire: Wire
  readonly #clock: Clock
  readonly #splitter: ResponseSplitter
  /** The most bytes that one command may be answered with. */
  readonly #bytesMax: number
  #command: Command | undefined
  /** The bytes that have arrived since the command began. */
  #answerBytes = 0
  #commands = 0
  #capabilities: ReadonlySet<string> | undefined
  #lastBytesMs: number
  /** The reason that the server gave when it closed the connection. */
  #farewell = ''
  /** The server knows the client without a login. */
  #isLoggedIn = false
  /** Called when the server reports messages that it had not reported before. */
  onChange: (() => void) | undefined

  private constructor(wire: Wire, { clock, bytesMax }: ImapOptions) {
    this.#wire = wire
    this.#clock = clock
    this.#splitter = new ResponseSplitter(bytesMax)
    this.#bytesMax = bytesMax + LINE_BYTES_MAX
    this.#lastBytesMs = clock.monotonicMs()
    void wire.closed.then((error) =>
      this.#command?.reject(
        this.#farewell ? new AppError('unavailable', `The IMAP server closed the connection: ${this.#farewell}`) : error,
      ),
    )
  }

  /** Connects, and encrypts the connection. Throws `unavailable`. It breaks when `signal` aborts. */
  static async open(options: ImapOptions, signal: AbortSignal): Promise<ImapLine> {
    const { server, clock } = options
    const wire = await Wire.open(server, NAME, clock, signal)
    const line = new ImapLine(wire, options)
    try {
      const greeting = line.#begin(GREETING, {})
      wire.onBytes((bytes) => line.#take(bytes))
      await line.#inTime(greeting, COMMAND_MS)
      if (server.security === 'starttls') await line.#startTls()
      return line
    } catch (error) {
      wire.destroy('ended')
      throw error
    }
  }

  /** Aborts when the connection has closed. */
  get signal(): AbortSignal {
    return this.#wire.signal
  }

  /** Whether the server knew the client when the connection began. */
  get isLoggedIn(): boolean {
    return this.#isLoggedIn
  }

  /** Returns what the server can do now. */
  async capabilities(): Promise<ReadonlySet<string>> {
    if (!this.#capabilities) await this.run('CAPABILITY')
    this.#capabilities ??= new Set()
    return this.#capabilities
  }

  /** Asks for the capabilities again, because a login or encryption changes them. */
  forgetCapabilities(): void {
    this.#capabilities = undefined
  }

  /** Runs a command. Returns the text of its completion. Throws `ImapRefusal`, or the reason why the connection closed. */
  run(line: string, options: CommandOptions = {}): Promise<string> {
    const tag = `A${++this.#commands}`
    const outcome = this.#begin(tag, options)
    void this.#wire.write(`${tag} ${line}\r\n`)
    return this.#inTime(outcome, options.silentMs ?? COMMAND_MS)
  }

  /** Sends a further part of the command that runs. */
  write(text: string): void {
    void this.#wire.write(text)
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
    await this.run('STARTTLS').catch((error: unknown) => {
      throw error instanceof ImapRefusal ? new AppError('forbidden', `The IMAP server refuses STARTTLS: ${error.message}`) : error
    })
    // Bytes that came before the encryption could be of an attacker.
    if (this.#splitter.isPartial) throw new AppError('unavailable', 'The IMAP server sent data before the encryption')
    this.#capabilities = undefined
    await this.#wire.startTls()
  }

  #begin(tag: string, { onData = () => undefined, onContinue = () => undefined }: CommandOptions): Promise<string> {
    if (this.#command) throw new Error('an IMAP command runs already')
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    this.#answerBytes = 0
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
    this.#answerBytes += bytes.length
    try {
      // Responses that are small each, and without end, would fill the memory.
      if (this.#answerBytes > this.#bytesMax) throw new Error('an answer of the server is too large')
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
    if (/^\d{1,10} (?:EXISTS|RECENT)/i.test(text)) this.onChange?.()
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
}
