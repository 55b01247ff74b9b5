/** Connects to the gateway, takes in events, and fetches the messages that were missed. */
import { askedDelayMs, signalScope } from '@sluice/kit'
import { members } from '@sluice/kit/foreign-json'
import { AppError, type Deliver, errorText, type Host } from '@sluice/sdk'
import { callDiscord, type DiscordApi } from './api.ts'
import type { ConnectionHealth } from './connection-health.ts'
import type { Cursors } from './cursors.ts'
import { BAD_TOKEN, type Ending, type GatewayAddress, GatewayConnection } from './gateway-connection.ts'
import { Guilds } from './guilds.ts'
import { Intake } from './intake.ts'
import { MissedMessages, STALE_MS } from './missed-messages.ts'
import { conversationOf, type ListenSettings, parseMessage, parsePress } from './parse.ts'
import { isSnowflake, snowflakeAt } from './snowflake.ts'

/** The delay before a refused connection is tried again: only the operator can correct the reason. */
export const REFUSED_MS = 900_000
const SESSIONS_WAIT_MS_MAX = 86_400_000
const ASKED_DELAY_MS_MAX = 3_600_000
const FLUSH_MS = 5000
/** Acknowledges a press without changing the message. See "Interaction Callback Type" of Discord's documentation. */
const DEFERRED_UPDATE_MESSAGE = 6

export class DiscordListener {
  readonly #host: Host
  readonly #api: DiscordApi
  readonly #settings: ListenSettings
  readonly #cursors: Cursors
  readonly #health: ConnectionHealth
  readonly #notificationChannel: string | undefined

  /** The notification channel is followed from the first connection on, even before a message was written in it. */
  constructor(
    host: Host,
    api: DiscordApi,
    settings: ListenSettings,
    cursors: Cursors,
    health: ConnectionHealth,
    notificationChannel: string | undefined,
  ) {
    this.#host = host
    this.#api = api
    this.#settings = settings
    this.#cursors = cursors
    this.#health = health
    this.#notificationChannel = notificationChannel
  }

  /**
   * See `Channel.listen`. Rejects with `unavailable` when the connection has ended: after `REFUSED_MS` if the platform refused it,
   * and not before the time that the platform asked for.
   */
  async listen(deliver: Deliver, signal: AbortSignal): Promise<void> {
    await this.#cursors.load()
    const stopped = new AbortController()
    using scope = signalScope([signal, stopped.signal])
    const flushing = this.#flushPeriodically(scope.signal)
    let ending: Ending
    let askedMs = 0
    try {
      ending = await this.#run(deliver, signal)
    } catch (error) {
      ending = signal.aborted ? { how: 'aborted' } : { how: 'failed', detail: errorText(error) }
      askedMs = askedDelayMs(error, ASKED_DELAY_MS_MAX)
    } finally {
      stopped.abort()
      await flushing
    }
    if (ending.how === 'aborted') return
    this.#health.down(ending.detail)
    await this.#waitAfter(ending.how, ending.detail, askedMs, signal)
    if (signal.aborted) return
    throw new AppError('unavailable', ending.detail)
  }

  async #run(deliver: Deliver, signal: AbortSignal): Promise<Ending> {
    const address = await this.#findGateway(signal)
    if ('how' in address) return address
    const over = new AbortController()
    using scope = signalScope([signal, over.signal])
    const guilds = new Guilds(this.#settings.account, this.#host.clock)
    const missed = new MissedMessages(this.#host, this.#api, this.#cursors, this.#settings, guilds)
    const source = {
      missedIn: (channel: string, during: AbortSignal) => missed.of(channel, during),
      acknowledge: ({ callbackPath }: { readonly callbackPath: string }) => this.#acknowledge(callbackPath, signal),
    }
    const intake = new Intake(this.#host, this.#cursors, source, deliver, scope.signal)
    const connection = new GatewayConnection(this.#host, this.#api.token, address, {
      onReady: (botId, servers) => {
        guilds.begin(botId, servers)
        this.#catchUp(intake)
      },
      onResumed: () => this.#health.connected(),
      onLost: () => this.#health.lost(),
      onDispatch: (type, data) => this.#dispatch(type, data, guilds, intake),
    })
    try {
      return await connection.hold(signal)
    } finally {
      // The cursors stay before unfinished messages, so the next connection fetches them.
      over.abort()
      await intake.settled()
    }
  }

  /** Returns the address of the gateway and the number of sessions left today, or the reason not to connect. */
  async #findGateway(signal: AbortSignal): Promise<GatewayAddress | Ending> {
    const { clock, log } = this.#host
    if (this.#api.token === '') return { how: 'refused', detail: 'bot_token is empty' }
    const { status, json } = await callDiscord(this.#api, { method: 'GET', path: '/gateway/bot', signal, accept: [401] })
    if (status === 401) return { how: 'refused', detail: BAD_TOKEN }
    const { url, session_start_limit } = members(json)
    const { remaining, reset_after } = members(session_start_limit)
    const target = URL.parse(typeof url === 'string' ? url : '')
    // The token is sent to this address, so it must be encrypted unless the API itself is not.
    if (!target || (target.protocol !== 'wss:' && !(target.protocol === 'ws:' && this.#api.url.startsWith('http:')))) {
      throw new AppError('upstream', 'discord did not return a valid address of its gateway')
    }
    const sessionsMax = typeof remaining === 'number' ? remaining : 1
    if (sessionsMax > 0) return { url: target.href.replace(/\/$/, ''), sessionsMax }
    const waitMs = Math.min(SESSIONS_WAIT_MS_MAX, Math.max(0, Number(reset_after) || 0))
    log.warn('daily sessions of the platform are used up', { channel: 'discord', wait_secs: Math.ceil(waitMs / 1000) })
    await clock.sleep(waitMs, signal)
    return { how: 'failed', detail: 'The sessions that the platform allows in a day were used up' }
  }

  #catchUp(intake: Intake): void {
    const { clock, log } = this.#host
    this.#health.connected()
    if (this.#notificationChannel !== undefined) this.#cursors.follow(this.#notificationChannel, { after: snowflakeAt(clock.nowMs()) })
    const notBefore = new Date(clock.nowMs() - STALE_MS).toISOString()
    log.info('connected, fetching missed messages', { channel: 'discord', count: this.#cursors.channels().length, notBefore })
    intake.catchUp()
  }

  #dispatch(type: string, data: unknown, guilds: Guilds, intake: Intake): void {
    const event = members(data)
    this.#health.received()
    guilds.dispatch(type, event)
    if (type === 'MESSAGE_CREATE') {
      const conversation = conversationOf(this.#settings, event)
      if (!conversation || !isSnowflake(event.id)) return
      intake.message(conversation, { id: event.id, inbound: parseMessage(this.#settings, guilds, event, conversation) })
    } else if (type === 'INTERACTION_CREATE') {
      const press = parsePress(this.#settings, event)
      if (press) intake.press(press)
    }
  }

  async #acknowledge(callbackPath: string, signal: AbortSignal): Promise<void> {
    const body = { type: DEFERRED_UPDATE_MESSAGE }
    await callDiscord(this.#api, { method: 'POST', path: callbackPath, body, isAuthorized: false, signal })
  }

  async #waitAfter(how: 'refused' | 'failed', reason: string, askedMs: number, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#host
    if (how === 'refused') {
      log.error('platform refused the connection', { channel: 'discord', reason, retry_secs: REFUSED_MS / 1000 })
      await clock.sleep(REFUSED_MS, signal)
    } else if (askedMs > 0) {
      log.warn('platform asked for a delay', { channel: 'discord', reason, retry_secs: askedMs / 1000 })
      await clock.sleep(askedMs, signal)
    }
  }

  /**
   * Stores the cursors every few seconds instead of with each message: the inbox drops duplicates after a crash. Stores them
   * once more when `signal` aborts.
   */
  async #flushPeriodically(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#host
    for (let isLast = false; !isLast; ) {
      await clock.sleep(FLUSH_MS, signal)
      isLast = signal.aborted
      await this.#cursors.flush().catch((error: unknown) => log.warn('cursors not stored', { channel: 'discord', error }))
    }
  }
}
