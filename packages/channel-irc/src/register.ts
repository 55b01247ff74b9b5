/**
 * Registration: capabilities, SASL and the nick. See https://ircv3.net/specs/extensions/capability-negotiation and
 * https://ircv3.net/specs/extensions/sasl-3.1.
 */
import { signalScope, untilAborted } from '@sluice/kit'
import { AppError, type Clock } from '@sluice/sdk'
import type { IrcConfig } from './config.ts'
import type { Link } from './link.ts'
import type { Line } from './wire.ts'

export interface Registered {
  /** The nick that the server gave, which differs from the configured one while that is in use. */
  readonly nick: string
  readonly capabilities: ReadonlySet<string>
  readonly isLoggedIn: boolean
}

const REGISTER_MS = 60_000
const WANTED = ['message-tags', 'server-time', 'account-tag', 'echo-message', 'batch', 'draft/chathistory', 'draft/message-redaction']
/** The answers to a name and password that are wrong, and to an account that is locked. */
const SASL_REFUSALS = new Set(['902', '904', '905', '906', '908'])
const NICK_TAKEN = new Set(['433', '436', '437'])
/** 432: the nick is not valid here. 464: wrong password. 465: the bot is banned. 463: the host may not connect. */
const REFUSALS = new Set(['432', '463', '464', '465'])
const SASL_PIECE = 400
const NICKS_MAX = 4

/**
 * Resolves once the server has welcomed the bot. Throws `forbidden` for what only the operator can change, such as a wrong password, and
 * `unavailable` otherwise.
 */
export async function register(link: Link, config: IrcConfig, clock: Clock): Promise<Registered> {
  const registration = new Registration(link, config)
  const stop = link.onLine((line) => registration.take(line))
  using limit = signalScope([link.signal], REGISTER_MS, clock)
  try {
    registration.begin()
    return await untilAborted(registration.outcome, limit.signal, 'The registration ended')
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'aborted') throw error
    throw limit.timedOut ? new AppError('unavailable', 'The irc server did not welcome the bot in time') : await link.closed
  } finally {
    stop()
  }
}

class Registration {
  readonly #link: Link
  readonly #config: IrcConfig
  readonly #outcome = Promise.withResolvers<Registered>()
  readonly #offered = new Set<string>()
  readonly #enabled = new Set<string>()
  #nick: string
  #nicks = 1
  #isLoggedIn = false

  constructor(link: Link, config: IrcConfig) {
    this.#link = link
    this.#config = config
    this.#nick = config.nickname
    this.#outcome.promise.catch(() => undefined)
  }

  get outcome(): Promise<Registered> {
    return this.#outcome.promise
  }

  begin(): void {
    const { nickname, username = nickname, server_password } = this.#config
    this.#link.send('CAP LS 302')
    if (server_password) this.#link.send(`PASS :${server_password.reveal()}`)
    this.#link.send(`NICK ${this.#nick}`)
    this.#link.send(`USER ${username} 0 * :Sluice`)
  }

  take(line: Line): void {
    const { command, params } = line
    if (command === 'CAP') this.#takeCapabilities(params)
    else if (command === 'AUTHENTICATE' && params[0] === '+') this.#authenticate()
    else if (command === '903') this.#loggedIn()
    else if (SASL_REFUSALS.has(command)) this.#refuse(`The irc server refuses sasl_password: ${reasonOf(params)}`)
    else if (REFUSALS.has(command)) this.#refuse(`The irc server refuses the bot (${command}): ${reasonOf(params)}`)
    else if (NICK_TAKEN.has(command)) this.#tryNextNick(params)
    else if (command === '001') this.#welcomed(params[0] ?? this.#nick)
  }

  #takeCapabilities(params: readonly string[]): void {
    const [, what, ...rest] = params
    const names = (rest.at(-1) ?? '').split(' ').flatMap((each) => each.split('=')[0] || [])
    if (what === 'LS') {
      for (const name of names) this.#offered.add(name)
      // A list of several lines has `*` before the names of all but the last one.
      if (rest.length === 1) this.#request()
    } else if (what === 'ACK') {
      for (const name of names) this.#enabled.add(name)
      if (this.#enabled.has('sasl')) this.#link.send('AUTHENTICATE PLAIN')
      else this.#link.send('CAP END')
    } else if (what === 'NAK') {
      if (this.#config.sasl_password) this.#refuse('The irc server refuses SASL, but sasl_password is set')
      else this.#link.send('CAP END')
    }
  }

  #request(): void {
    const wanted = WANTED.filter((name) => this.#offered.has(name))
    if (this.#config.sasl_password) {
      if (!this.#offered.has('sasl')) return void this.#refuse('sasl_password is set, but the irc server offers no SASL')
      wanted.unshift('sasl')
    }
    this.#link.send(wanted.length > 0 ? `CAP REQ :${wanted.join(' ')}` : 'CAP END')
  }

  #authenticate(): void {
    const { nickname, sasl_password } = this.#config
    if (!sasl_password) return
    const text = Buffer.from(`${nickname}\0${nickname}\0${sasl_password.reveal()}`).toString('base64')
    for (let at = 0; at < text.length; at += SASL_PIECE) this.#link.send(`AUTHENTICATE ${text.slice(at, at + SASL_PIECE)}`)
    // A last piece of full length needs an empty one after it.
    if (text.length % SASL_PIECE === 0) this.#link.send('AUTHENTICATE +')
  }

  #loggedIn(): void {
    this.#isLoggedIn = true
    this.#link.send('CAP END')
  }

  #tryNextNick(params: readonly string[]): void {
    if (this.#nicks >= NICKS_MAX) {
      this.#outcome.reject(
        new AppError('unavailable', `The nick ${this.#config.nickname} is not free on the irc server: ${reasonOf(params)}`),
      )
      return
    }
    this.#nicks += 1
    this.#nick += '_'
    this.#link.send(`NICK ${this.#nick}`)
  }

  #welcomed(nick: string): void {
    if (this.#config.sasl_password && !this.#isLoggedIn) return void this.#refuse('The irc server did not log the bot in by SASL')
    this.#outcome.resolve({ nick, capabilities: this.#enabled, isLoggedIn: this.#isLoggedIn })
  }

  #refuse(detail: string): void {
    this.#outcome.reject(new AppError('forbidden', detail))
  }
}

const reasonOf = (params: readonly string[]): string => (params.at(-1) ?? '').slice(0, 200)
