/**
 * One connection to the Discord gateway. The library `@discordjs/ws` sends heartbeats, notices silent connections and resumes
 * sessions. This class adds the delays between attempts, the daily limit of sessions, and the decision when to give up.
 */
import type * as DiscordWs from '@discordjs/ws'
import { type Backoff, backoffMs } from '@sluice/kit'
import { errorText, type Host } from '@sluice/sdk'

export interface GatewayAddress {
  readonly url: string
  /** The number of sessions that the platform still allows today. */
  readonly sessionsMax: number
}

export interface GatewayEvents {
  /** A session began. The caller fetches earlier messages; the platform sends one GUILD_CREATE event for each of the servers. */
  onReady(botId: string, servers: readonly unknown[]): void
  /** A session was resumed, and every event missed in the meantime has been dispatched. */
  onResumed(): void
  /** The connection closed. It is opened again unless `hold` resolves. */
  onLost(): void
  onDispatch(type: string, data: unknown): void
}

/** Why a connection ended. After `refused` the operator has to change something; after `failed` another attempt may succeed. */
export type Ending = { readonly how: 'aborted' } | { readonly how: 'refused' | 'failed'; readonly detail: string }

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
/** The number of consecutive connections shorter than `STABLE_MS` after which `hold` gives up. */
const ATTEMPTS_MAX = 5
const STABLE_MS = 60_000
/** The platform accepts at most one new session in this time. */
const IDENTIFY_EVERY_MS = 5000
const RECONNECT: Backoff = { firstMs: 500, longestMs: 30_000 }

export class GatewayConnection {
  readonly #host: Host
  readonly #token: string
  readonly #address: GatewayAddress
  readonly #events: GatewayEvents
  readonly #ended = Promise.withResolvers<Ending>()
  /** Aborts with the end of the connection. */
  readonly #over = new AbortController()
  #shard: DiscordWs.WebSocketShard | undefined
  /** The session to resume. */
  #session: DiscordWs.SessionInfo | null = null
  #sessionsBegun = 0
  #lastIdentifyMs = 0
  #failures = 0
  #readySinceMs: number | undefined
  #isOpen = false
  #isUnreachable = false

  constructor(host: Host, token: string, address: GatewayAddress, events: GatewayEvents) {
    this.#host = host
    this.#token = token
    this.#address = address
    this.#events = events
  }

  /**
   * Connects, and reconnects after a loss, until `signal` aborts, the platform refuses the bot, or too many attempts failed.
   * Call it once.
   */
  async hold(signal: AbortSignal): Promise<Ending> {
    const library = await import('@discordjs/ws')
    const shard = new library.WebSocketShard(this.#strategy(library), 0)
    this.#shard = shard
    this.#observe(shard)
    const abort = () => this.#end({ how: 'aborted' })
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    else shard.connect().catch(() => undefined)
    const ending = await this.#ended.promise
    signal.removeEventListener('abort', abort)
    return ending
  }

  #strategy({ Encoding, WebSocketShardStatus }: typeof DiscordWs): DiscordWs.IContextFetchingStrategy {
    const { url, sessionsMax } = this.#address
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
        gatewayInformation: {
          url,
          shards: 1,
          session_start_limit: { total: sessionsMax, remaining: sessionsMax, reset_after: 0, max_concurrency: 1 },
        },
      },
      // The library awaits this before it connects, which is the only place where it can be delayed.
      retrieveSessionInfo: () => (this.#shard?.status === WebSocketShardStatus.Idle ? this.#beforeConnecting() : this.#session),
      updateSessionInfo: (_shard, session) => this.#keepSession(session),
      waitForIdentify: (_shard, closed) => this.#beforeIdentifying(closed),
    }
  }

  #observe(shard: DiscordWs.WebSocketShard): void {
    shard.on('hello', () => {
      this.#isOpen = true
      this.#isUnreachable = false
      if (this.#over.signal.aborted) this.#close()
    })
    shard.on('ready', ({ user, guilds }) => {
      this.#readySinceMs = this.#host.clock.monotonicMs()
      this.#events.onReady(user.id, guilds ?? [])
    })
    shard.on('resumed', () => {
      this.#readySinceMs = this.#host.clock.monotonicMs()
      this.#events.onResumed()
    })
    shard.on('dispatch', ({ t, d }) => {
      if (!this.#over.signal.aborted) this.#events.onDispatch(t, d)
    })
    shard.on('socketError', (error) => {
      this.#isUnreachable = true
      this.#host.log.debug('gateway cannot be reached', { channel: 'discord', reason: errorText(error) })
    })
    // The `closed` event reports the same failure by its code.
    shard.on('error', () => undefined)
    shard.on('closed', (code) => this.#closed(code))
  }

  /** Never resolves once the connection has ended, so that the library does not connect again. */
  async #beforeConnecting(): Promise<DiscordWs.SessionInfo | null> {
    if (this.#failures > 1) await this.#host.clock.sleep(backoffMs(this.#failures - 1, RECONNECT), this.#over.signal)
    return this.#over.signal.aborted ? never() : this.#session
  }

  async #beforeIdentifying(closed: AbortSignal): Promise<void> {
    const { clock } = this.#host
    if (this.#sessionsBegun >= this.#address.sessionsMax) {
      this.#end({ how: 'failed', detail: 'The sessions that the platform allows in a day are used up' })
    }
    if (this.#sessionsBegun > 0) {
      const dueMs = this.#lastIdentifyMs + IDENTIFY_EVERY_MS * (1 + Math.random() / 4)
      await clock.sleep(dueMs - clock.monotonicMs(), closed)
    }
    if (this.#over.signal.aborted) return never()
    closed.throwIfAborted()
    this.#sessionsBegun += 1
    this.#lastIdentifyMs = clock.monotonicMs()
  }

  #keepSession(session: DiscordWs.SessionInfo | null): void {
    // The library forgets the session when the platform cannot be reached, although the session can still be resumed.
    if (session === null && this.#isUnreachable) return
    this.#session = session && { ...session, resumeURL: isWebSocketUrl(session.resumeURL) ? session.resumeURL : this.#address.url }
  }

  #closed(code: number): void {
    this.#isOpen = false
    if (this.#over.signal.aborted) return
    const heldMs = this.#readySinceMs === undefined ? 0 : this.#host.clock.monotonicMs() - this.#readySinceMs
    this.#readySinceMs = undefined
    this.#failures = heldMs >= STABLE_MS ? 1 : this.#failures + 1
    this.#events.onLost()
    this.#host.log.info('gateway closed the connection', { channel: 'discord', code, failures: this.#failures })
    const refusal = FATAL_CLOSES[code]
    if (refusal !== undefined) this.#end({ how: 'refused', detail: refusal })
    else if (this.#failures >= ATTEMPTS_MAX) {
      this.#end({ how: 'failed', detail: `The gateway closed ${ATTEMPTS_MAX} connections in a row (last close code ${code})` })
    }
  }

  #end(ending: Ending): void {
    if (this.#over.signal.aborted) return
    this.#over.abort()
    this.#ended.resolve(ending)
    // The `hello` listener closes a connection that is still opening: the library would forget it without closing it.
    if (this.#isOpen) this.#close()
  }

  #close(): void {
    void this.#shard?.destroy({ reason: 'Over' })
  }
}

const never = (): Promise<never> => new Promise(() => undefined)

const isWebSocketUrl = (url: unknown): url is string => typeof url === 'string' && /^wss?:$/.test(URL.parse(url)?.protocol ?? '')
