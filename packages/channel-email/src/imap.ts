/** A client of one IMAP server (RFC 3501, RFC 2177): the login, and the messages of a folder. */
import { signalScope, withoutTrailing } from '@sluice/kit'
import type { Clock } from '@sluice/sdk'
import { type Login, plainResponse, tokenResponse } from './credentials.ts'
import { ImapLine, type ImapOptions, ImapRefusal } from './imap-line.ts'
import type { ImapResponse } from './imap-responses.ts'
import { type ImapValue, parseValues, textOf } from './imap-values.ts'

export interface Folder {
  readonly uidValidity: string
  /** The UID that the next message will have at least. */
  readonly uidNext: number
}

/** The data of a FETCH response by their names in upper case. */
export type Fetched = ReadonlyMap<string, ImapValue>

/** A wait for changes ends this time after it should have ended. */
const IDLE_END_MS = 30_000

export class Imap {
  readonly #line: ImapLine
  readonly #clock: Clock
  #hasChanged = false
  /** Ends the wait for a change. */
  #onChange: (() => void) | undefined
  #refusesIdle = false

  private constructor(line: ImapLine, clock: Clock) {
    this.#line = line
    this.#clock = clock
    line.onChange = () => {
      this.#hasChanged = true
      this.#onChange?.()
    }
  }

  /** Connects, and encrypts the connection. Throws `unavailable`. It breaks when `signal` aborts. */
  static async open(options: ImapOptions, signal: AbortSignal): Promise<Imap> {
    return new Imap(await ImapLine.open(options, signal), options.clock)
  }

  /** Aborts when the connection has closed. */
  get signal(): AbortSignal {
    return this.#line.signal
  }

  /** Throws `ImapRefusal` if the server does not accept the login. */
  async login(login: Login): Promise<void> {
    const capabilities = await this.#line.capabilities()
    if (this.#line.isLoggedIn) return
    if (login.kind === 'token') await this.#authenticate('XOAUTH2', tokenResponse(login))
    else if (capabilities.has('AUTH=PLAIN')) await this.#authenticate('PLAIN', plainResponse(login))
    else if (capabilities.has('LOGINDISABLED'))
      throw new ImapRefusal('The server accepts no password on this connection', 'PRIVACYREQUIRED')
    else {
      this.#line.forgetCapabilities()
      await this.#line.run(`LOGIN ${quoted(login.username)} ${quoted(login.secret.reveal())}`)
    }
    await this.#line.capabilities()
    // Some servers refuse to open folders for a client that does not name itself (RFC 2971).
    if (await this.has('ID')) await this.#line.run('ID ("name" "sluice")').catch(ignoreRefusal)
  }

  async has(capability: string): Promise<boolean> {
    return (await this.#line.capabilities()).has(capability)
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
    await this.#line.run(`EXAMINE ${quoted(folderName(folder))}`, { onData })
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
    await this.#line.run(`UID SEARCH ${criteria}`, { onData })
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
    await this.#line.run(`UID FETCH ${uid} (UID ${items})`, { onData })
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
      if (!signal.aborted) await this.#line.run('NOOP', { silentMs: IDLE_END_MS })
      return
    }
    let isIdle = false
    const onContinue = (): void => {
      isIdle = true
      void this.#untilChange(ms, signal).then(() => this.#line.write('DONE\r\n'))
    }
    await this.#line.run('IDLE', { onContinue, silentMs: ms + IDLE_END_MS }).catch(ignoreRefusal)
    this.#refusesIdle = !isIdle
  }

  /** Says goodbye, and ends the connection. */
  logOut(): void {
    this.#line.logOut()
  }

  /** Ends the connection at once. */
  destroy(): void {
    this.#line.destroy()
  }

  /** An error of XOAUTH2 comes as a challenge, which an empty line answers. */
  async #authenticate(mechanism: string, response: string): Promise<void> {
    const isInitial = await this.has('SASL-IR')
    let isSent = isInitial
    const onContinue = (): void => {
      this.#line.write(isSent ? '\r\n' : `${response}\r\n`)
      isSent = true
    }
    this.#line.forgetCapabilities()
    await this.#line.run(`AUTHENTICATE ${mechanism}${isInitial ? ` ${response}` : ''}`, { onContinue })
  }

  async #untilChange(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#hasChanged || this.signal.aborted) return
    const change = Promise.withResolvers<void>()
    this.#onChange = change.resolve
    using scope = signalScope([signal, this.signal])
    await Promise.race([change.promise, this.#clock.sleep(ms, scope.signal)])
    this.#onChange = undefined
  }
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
