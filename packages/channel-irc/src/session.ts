/** A registered connection: the bot's names, the channels it is in, and the batches of history that arrive. */
import type { Clock } from '@sluice/sdk'
import type { IrcConfig } from './config.ts'
import type { Link } from './link.ts'
import type { Registered } from './register.ts'
import { folded, type Line } from './wire.ts'

export interface SessionEvents {
  /** A line outside of a history. */
  onLine(line: Line): void
  /** What keeps the bot out of a channel, or undefined when it is in all of them. */
  onProblem(detail: string | undefined): void
}

/** The refusals of JOIN that name the channel in their second parameter. See RFC 2812, section 3.2.1. */
const JOIN_REFUSALS = new Set(['403', '405', '407', '437', '471', '473', '474', '475', '476', '477', '489'])
/** The longest user and host names, for the time before the server has shown the bot's own. */
const USER_HOST_BYTES_MAX = 12 + 64
const LINE_BYTES = 512
const HISTORY_BATCH = 'chathistory'
const TARGETS_BATCH = 'draft/chathistory-targets'
const REPAIR_MS = 30_000
const REPAIR_MS_MAX = 600_000

export class Session {
  readonly #link: Link
  readonly #config: IrcConfig
  readonly #events: SessionEvents
  readonly #joined = new Set<string>()
  readonly #refused = new Map<string, string>()
  readonly #entered = Promise.withResolvers<void>()
  readonly #histories = new Map<string, Line[]>()
  readonly #supported = new Map<string, string>()
  #onHistory: ((lines: readonly Line[]) => void) | undefined
  #nick: string
  #capabilities: ReadonlySet<string> = new Set()
  #userHost: string | undefined

  constructor(link: Link, config: IrcConfig, events: SessionEvents) {
    this.#link = link
    this.#config = config
    this.#events = events
    this.#nick = config.nickname
    link.onLine((line) => this.#take(line))
  }

  get link(): Link {
    return this.#link
  }

  get nick(): string {
    return this.#nick
  }

  /** Whether the server keeps messages, and names each by an id. */
  get keepsHistory(): boolean {
    return ['draft/chathistory', 'batch', 'server-time', 'message-tags'].every((name) => this.has(name))
  }

  /** The most messages that one request for history returns. */
  get historyMax(): number {
    return Math.min(100, Number(this.#supported.get('CHATHISTORY')) || 100)
  }

  /** Resolves once each configured channel is entered or refused. */
  get entered(): Promise<void> {
    return this.#entered.promise
  }

  has(capability: string): boolean {
    return this.#capabilities.has(capability)
  }

  isIn(target: string): boolean {
    return this.#joined.has(folded(this.#channelIn(target) ?? target))
  }

  isChannel(target: string): boolean {
    return this.#channelIn(target) !== undefined
  }

  /**
   * Returns the channel of a target; undefined for a nick. A message to `@#ops` reaches only the operators of that channel. See
   * https://modern.ircdocs.horse/#statusmsg-parameter.
   */
  #channelIn(target: string): string | undefined {
    const [types, statuses] = [this.#supported.get('CHANTYPES') ?? '#&', this.#supported.get('STATUSMSG') ?? '']
    const [first = ' ', second = ' '] = target
    if (types.includes(first)) return target
    return statuses.includes(first) && types.includes(second) ? target.slice(1) : undefined
  }

  /** The bytes of text that fit into one message after the prefix that the server adds. See RFC 2812, section 2.3. */
  roomFor(target: string): number {
    const prefix = this.#nick.length + (this.#userHost === undefined ? USER_HOST_BYTES_MAX : Buffer.byteLength(this.#userHost)) + 3
    const line = Number(this.#supported.get('LINELEN')) || LINE_BYTES
    return line - 2 - prefix - Buffer.byteLength(`PRIVMSG ${target} :`)
  }

  /** Identifies the bot, enters the channels, and enters them again for as long as the connection lasts. */
  begin({ nick, capabilities, isLoggedIn }: Registered, clock: Clock): void {
    const { nickserv_password, channels } = this.#config
    this.#nick = nick
    this.#capabilities = capabilities
    if (nickserv_password && !isLoggedIn)
      this.#link.send(`PRIVMSG NickServ :IDENTIFY ${this.#config.nickname} ${nickserv_password.reveal()}`)
    for (const channel of channels) this.#link.send(`JOIN ${channel}`)
    this.#settle()
    void this.#repair(clock)
  }

  /** Calls `take` with the lines of the next history that arrives. */
  awaitHistory(take: (lines: readonly Line[]) => void): void {
    this.#onHistory = take
  }

  #take(line: Line): void {
    const { command, params, tags } = line
    const history = this.#histories.get(tags.get('batch') ?? '')
    if (history) return void history.push(line)
    if (command === 'BATCH') this.#takeBatch(params)
    else if (command === '005') this.#takeSupport(params)
    else if (command === '396') this.#userHost = undefined
    else if (JOIN_REFUSALS.has(command)) this.#refusedBy(params)
    else if (command === 'KICK' && this.#isOwn(params[1])) this.#left(params[0], 'The bot was kicked')
    else if (this.#isOwn(line.nick)) this.#takeOwn(line)
    this.#events.onLine(line)
  }

  #takeBatch([reference = '', type]: readonly string[]): void {
    const id = reference.slice(1)
    if (reference.startsWith('+') && (type === HISTORY_BATCH || type === TARGETS_BATCH)) this.#histories.set(id, [])
    const lines = this.#histories.get(id)
    if (!reference.startsWith('-') || !lines) return
    this.#histories.delete(id)
    const take = this.#onHistory
    this.#onHistory = undefined
    take?.(lines)
  }

  #takeSupport(params: readonly string[]): void {
    for (const token of params.slice(1, -1)) {
      const [name = '', value = ''] = token.split('=')
      this.#supported.set(name, value)
      // See https://ircv3.net/specs/extensions/bot-mode.
      if (name === 'BOT' && /^[A-Za-z]$/.test(value)) this.#link.send(`MODE ${params[0]} +${value}`)
    }
  }

  #takeOwn({ command, params, source }: Line): void {
    if (source.includes('!')) this.#userHost = source.slice(source.indexOf('!') + 1)
    if (command === 'NICK') this.#nick = params[0] ?? this.#nick
    else if (command === 'JOIN') this.#enteredBy(params[0])
    else if (command === 'PART') this.#left(params[0], 'The bot was removed')
    else if (command === 'CHGHOST') this.#userHost = `${params[0] ?? ''}@${params[1] ?? ''}`
  }

  #isOwn(nick: string | undefined): boolean {
    return nick !== undefined && folded(nick) === folded(this.#nick)
  }

  #enteredBy(channel = ''): void {
    this.#joined.add(folded(channel))
    this.#refused.delete(folded(channel))
    this.#settle()
  }

  #left(channel = '', why: string): void {
    this.#joined.delete(folded(channel))
    this.#refused.set(folded(channel), why)
    this.#settle()
  }

  #refusedBy(params: readonly string[]): void {
    const [, channel = ''] = params
    // 437 is also the answer to a nick that is not available.
    if (!this.#config.channels.some((each) => folded(each) === folded(channel))) return
    this.#refused.set(folded(channel), (params.at(-1) ?? '').slice(0, 200))
    this.#settle()
  }

  #settle(): void {
    const missing = this.#missing()
    if (missing.every((channel) => this.#refused.has(folded(channel)))) this.#entered.resolve()
    this.reportProblem()
  }

  /** Reports what keeps the bot out of a channel. */
  reportProblem(): void {
    const missing = this.#missing()
    const [first] = missing
    const why = first === undefined ? undefined : this.#refused.get(folded(first))
    this.#events.onProblem(why === undefined ? undefined : `The bot is not in ${missing.join(', ')}: ${why}`)
  }

  #missing(): readonly string[] {
    return this.#config.channels.filter((channel) => !this.isIn(channel))
  }

  /** Enters channels again and takes the configured nick back, with growing delays while that is refused. */
  async #repair(clock: Clock): Promise<void> {
    const { signal } = this.#link
    for (let delayMs = REPAIR_MS; !signal.aborted; ) {
      await clock.sleep(delayMs, signal)
      const missing = this.#missing()
      const isRenamed = !this.#isOwn(this.#config.nickname)
      for (const channel of missing) this.#link.send(`JOIN ${channel}`)
      if (isRenamed) this.#takeNickBack()
      delayMs = missing.length > 0 || isRenamed ? Math.min(delayMs * 2, REPAIR_MS_MAX) : REPAIR_MS
    }
  }

  #takeNickBack(): void {
    const { nickname, nickserv_password, sasl_password } = this.#config
    const password = nickserv_password ?? sasl_password
    if (password) this.#link.send(`PRIVMSG NickServ :REGAIN ${nickname} ${password.reveal()}`)
    this.#link.send(`NICK ${nickname}`)
  }
}
