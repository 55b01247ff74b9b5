/**
 * Connections to the Discord gateway, one after another. The library `@discordjs/ws` sends heartbeats, notices silent connections
 * and resumes sessions; this class keeps it from connecting again by itself, and keeps the session for the next connection.
 */
import type * as DiscordWs from '@discordjs/ws'
import { AppError, errorText, type Host } from '@sluice/sdk'

export interface GatewayEvents {
  /** A session began. The caller fetches earlier messages; the platform sends one GUILD_CREATE event for each of the servers. */
  onReady(botId: string, servers: readonly unknown[]): void
  /** A session was resumed, and every event missed in the meantime has been dispatched. */
  onResumed(): void
  onDispatch(type: string, data: unknown): void
}

/** GUILDS, GUILD_MESSAGES, DIRECT_MESSAGES and MESSAGE_CONTENT. */
export const INTENTS = 1 | 512 | 4096 | 32768
export const BAD_TOKEN = 'The platform refuses bot_token: copy the token of the bot again from the developer portal'

const PORTAL = 'https://discord.com/developers/applications'
/**
 * Close codes after which a new connection would be refused again. See "Gateway Close Event Codes" of Discord's documentation.
 */
const FATAL_CLOSES: Readonly<Record<number, string>> = {
  4004: BAD_TOKEN,
  4010: 'The platform refuses the connection (4010, invalid shard)',
  4011: 'The bot is on too many servers for one connection (4011)',
  4012: 'The platform no longer speaks version 10 of its gateway (4012)',
  4013: 'The platform does not know the intents that are asked for (4013)',
  4014: `The platform refuses the intents (4014): switch on "Message Content Intent" under Bot at ${PORTAL}`,
}

const HANDSHAKE_MS = 10_000
/** Must exceed `HANDSHAKE_MS`: if the library gives up first, it leaves a connection without a listener for errors. */
const HELLO_MS = 20_000
const READY_MS = 15_000
/** The platform accepts at most one new session in this time. */
const IDENTIFY_EVERY_MS = 5000
/** A session is given up after so many connections in a row that the platform did not answer: its address may have changed. */
const UNANSWERED_MAX = 5

export class Gateway {
  readonly #host: Host
  readonly #token: string
  /** The session to resume. */
  #session: DiscordWs.SessionInfo | null = null
  #lastIdentifyMs = Number.NEGATIVE_INFINITY
  #unanswered = 0

  constructor(host: Host, token: string) {
    this.#host = host
    this.#token = token
  }

  /** Returns whether the next connection resumes a session, so that it needs no address. */
  resumes(): boolean {
    if (this.#unanswered >= UNANSWERED_MAX) this.forgetSession()
    return this.#session !== null
  }

  /** Makes the next connection begin a session. */
  forgetSession(): void {
    this.#session = null
  }

  /**
   * Runs one connection. `url` is the address for a new session. Resolves after `signal` aborted; rejects with `forbidden` when
   * the platform refuses the bot, and with `unavailable` when the connection ended otherwise.
   */
  async connect(url: string, events: GatewayEvents, signal: AbortSignal): Promise<void> {
    const library = await import('@discordjs/ws')
    const ended = Promise.withResolvers<void>()
    const over = new AbortController()
    const shard: DiscordWs.WebSocketShard = new library.WebSocketShard(
      this.#strategy(url, () => shard.status === library.WebSocketShardStatus.Idle, over.signal, library),
      0,
    )
    let isOpen = false
    const end = (error?: AppError): void => {
      if (over.signal.aborted) return
      over.abort()
      if (error) ended.reject(error)
      else ended.resolve()
      // The `hello` listener closes a connection that is still opening: the library would forget it without closing it.
      if (isOpen) close()
    }
    const close = (): void => void shard.destroy({ reason: 'Over' })
    this.#observe(shard, events, over.signal)
    shard.on('hello', () => {
      isOpen = true
      if (over.signal.aborted) close()
    })
    shard.on('closed', (code) => {
      isOpen = false
      const refusal = FATAL_CLOSES[code]
      end(
        refusal === undefined
          ? new AppError('unavailable', `The gateway closed the connection (${code})`)
          : new AppError('forbidden', refusal),
      )
    })
    const abort = (): void => end()
    signal.addEventListener('abort', abort, { once: true })
    this.#unanswered += 1
    if (signal.aborted) abort()
    else shard.connect().catch(() => undefined)
    return ended.promise.finally(() => signal.removeEventListener('abort', abort))
  }

  #strategy(url: string, isIdle: () => boolean, over: AbortSignal, { Encoding }: typeof DiscordWs): DiscordWs.IContextFetchingStrategy {
    let hasBegun = false
    return {
      options: {
        token: this.#token,
        intents: INTENTS,
        version: '10',
        encoding: Encoding.JSON,
        compression: null,
        useIdentifyCompression: false,
        identifyProperties: { os: process.platform, browser: 'sluice', device: 'sluice' },
        initialPresence: null,
        largeThreshold: null,
        handshakeTimeout: HANDSHAKE_MS,
        helloTimeout: HELLO_MS,
        readyTimeout: READY_MS,
        shardCount: 1,
        gatewayInformation: { url, shards: 1, session_start_limit: { total: 1, remaining: 1, reset_after: 0, max_concurrency: 1 } },
      },
      // The library awaits this before it connects. Without an answer it never connects a second time.
      retrieveSessionInfo: () => {
        if (!isIdle()) return this.#session
        const isAgain = hasBegun
        hasBegun = true
        return isAgain || over.aborted ? never() : this.#session
      },
      updateSessionInfo: (_shard, session) => this.#keepSession(session, url),
      waitForIdentify: (_shard, closed) => this.#beforeIdentifying(closed, over),
    }
  }

  #observe(shard: DiscordWs.WebSocketShard, events: GatewayEvents, over: AbortSignal): void {
    shard.on('hello', () => {
      this.#unanswered = 0
    })
    shard.on('ready', ({ user, guilds }) => events.onReady(user.id, guilds ?? []))
    shard.on('resumed', () => events.onResumed())
    shard.on('dispatch', ({ t, d }) => {
      if (!over.aborted) events.onDispatch(t, d)
    })
    shard.on('socketError', (error) => {
      this.#host.log.debug('gateway cannot be reached', { channel: 'discord', reason: errorText(error) })
    })
    // The `closed` event reports the same failure by its code.
    shard.on('error', () => undefined)
  }

  async #beforeIdentifying(closed: AbortSignal, over: AbortSignal): Promise<void> {
    const { clock } = this.#host
    const dueMs = this.#lastIdentifyMs + IDENTIFY_EVERY_MS * (1 + Math.random() / 4)
    if (dueMs > clock.monotonicMs()) await clock.sleep(dueMs - clock.monotonicMs(), closed)
    if (over.aborted) return never()
    closed.throwIfAborted()
    this.#lastIdentifyMs = clock.monotonicMs()
  }

  #keepSession(session: DiscordWs.SessionInfo | null, url: string): void {
    // The library forgets the session when the platform cannot be reached, although the session can still be resumed.
    if (session === null && this.#unanswered > 0) return
    this.#session = session && { ...session, resumeURL: isWebSocketUrl(session.resumeURL) ? session.resumeURL : url }
  }
}

const never = (): Promise<never> => new Promise(() => undefined)

const isWebSocketUrl = (url: unknown): url is string => typeof url === 'string' && /^wss?:$/.test(URL.parse(url)?.protocol ?? '')
