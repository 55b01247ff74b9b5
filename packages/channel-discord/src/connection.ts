/** One connection to the gateway: connects or resumes, takes in events, and has missed messages fetched. */
import { members } from '@sluice/kit/foreign-json'
import { AppError, type Deliver, type Host, type ListenContext } from '@sluice/sdk'
import { callDiscord, type DiscordApi } from './api.ts'
import { MissedMessages } from './catch-up.ts'
import type { DiscordCursors } from './cursors.ts'
import { BAD_TOKEN, Gateway } from './gateway.ts'
import { Guilds } from './guilds.ts'
import { Intake } from './intake.ts'
import {
  conversationOf,
  type ListenSettings,
  type Press,
  parseCommand,
  parseDeletions,
  parseEdit,
  parseMessage,
  parsePress,
} from './parse.ts'
import { isSnowflake, snowflakeAt } from './snowflake.ts'

/** The messages of a session that are not stored yet, and the names that its events announced. Both outlive a connection. */
interface Session {
  readonly signal: AbortSignal
  readonly guilds: Guilds
  readonly intake: Intake
}

export class Connection {
  readonly #host: Host
  readonly #api: DiscordApi
  readonly #settings: ListenSettings
  readonly #cursors: DiscordCursors
  readonly #notificationChannel: string | undefined
  readonly #gateway: Gateway
  #session: Session | undefined
  /** The address for a new session, which the connection before it learned. */
  #url = ''

  /** The notification channel is followed from the first connection on, even before a message was written in it. */
  constructor(host: Host, api: DiscordApi, settings: ListenSettings, cursors: DiscordCursors, notificationChannel: string | undefined) {
    this.#host = host
    this.#api = api
    this.#settings = settings
    this.#cursors = cursors
    this.#notificationChannel = notificationChannel
    this.#gateway = new Gateway(host, api.token)
  }

  /** See `Channel.listen`. */
  async listen(deliver: Deliver, context: ListenContext): Promise<void> {
    const { signal, report } = context
    const { guilds, intake } = this.#sessionFor(deliver, context)
    try {
      if (!this.#gateway.resumes()) this.#url = await this.#findGateway(signal)
      const onReady = (botId: string, servers: readonly unknown[]): void => {
        guilds.begin(botId, servers)
        report.connected()
        this.#follow()
        intake.catchUp()
      }
      const onDispatch = (type: string, data: unknown): void => {
        report.event()
        this.#dispatch(type, data, guilds, intake)
      }
      await this.#gateway.connect(this.#url, { onReady, onResumed: report.connected, onDispatch }, signal)
    } catch (error) {
      if (!signal.aborted) throw error
    } finally {
      // The cursors stay before unfinished messages, so the next start fetches them.
      if (signal.aborted) await intake.settled()
    }
  }

  #sessionFor(deliver: Deliver, { signal, report }: ListenContext): Session {
    if (this.#session?.signal === signal) return this.#session
    // A resumed session does not repeat the events that an earlier intake had taken but not stored.
    this.#gateway.forgetSession()
    const guilds = new Guilds(this.#settings.account, this.#host.clock)
    const missed = new MissedMessages(this.#host, this.#api, this.#cursors, this.#settings, guilds, report.gap)
    const source = {
      missedIn: (channel: string, during: AbortSignal) => missed.of(channel, during),
      acknowledge: (press: Press) => this.#acknowledge(press, signal),
    }
    const intake = new Intake(this.#host, this.#cursors, source, deliver, signal)
    this.#session = { signal, guilds, intake }
    return this.#session
  }

  /** Returns the address of the gateway for a new session. Throws `rate_limited` if the sessions of the day are used up. */
  async #findGateway(signal: AbortSignal): Promise<string> {
    if (this.#api.token === '') throw new AppError('forbidden', 'bot_token is empty')
    const { status, json } = await callDiscord(this.#api, { method: 'GET', path: '/gateway/bot', signal, accept: [401] })
    if (status === 401) throw new AppError('forbidden', BAD_TOKEN)
    const { url, session_start_limit } = members(json)
    const { remaining, reset_after } = members(session_start_limit)
    const target = URL.parse(typeof url === 'string' ? url : '')
    if (!target || !isGateway(target, new URL(this.#api.url))) {
      throw new AppError('upstream', 'discord did not return a valid address of its gateway')
    }
    if (typeof remaining !== 'number' || remaining > 0) return target.href.replace(/\/$/, '')
    const retryAfterSecs = Math.ceil(Math.max(0, Number(reset_after) || 0) / 1000)
    throw new AppError('rate_limited', 'The sessions that the platform allows in a day are used up', { retryAfterSecs })
  }

  #follow(): void {
    const { clock } = this.#host
    if (this.#notificationChannel !== undefined) this.#cursors.follow(this.#notificationChannel, { after: snowflakeAt(clock.nowMs()) })
  }

  #dispatch(type: string, data: unknown, guilds: Guilds, intake: Intake): void {
    const event = members(data)
    guilds.dispatch(type, event)
    if (type === 'INTERACTION_CREATE') {
      const press = parsePress(this.#settings, event) ?? parseCommand(this.#settings, event)
      if (press) intake.press(press)
      return
    }
    const conversation = type.startsWith('MESSAGE_') ? conversationOf(this.#settings, event) : undefined
    if (!conversation) return
    if (type === 'MESSAGE_CREATE') {
      if (!isSnowflake(event.id)) return
      intake.message(conversation, { id: event.id, inbound: parseMessage(this.#settings, guilds, event, conversation) })
    } else if (type === 'MESSAGE_UPDATE') {
      const edit = parseEdit(this.#settings, guilds, event, conversation)
      if (edit) intake.change(conversation.channel, edit)
    } else if (type === 'MESSAGE_DELETE' || type === 'MESSAGE_DELETE_BULK') {
      for (const deletion of parseDeletions(this.#settings, event, conversation)) intake.change(conversation.channel, deletion)
    }
  }

  async #acknowledge({ callbackPath, answer: body }: Press, signal: AbortSignal): Promise<void> {
    await callDiscord(this.#api, { method: 'POST', path: callbackPath, body, isAuthorized: false, signal })
  }
}

/** The token is sent to this address: one of Discord or the host of `api_url`, and encrypted unless the API itself is not. */
export function isGateway(target: URL, api: URL): boolean {
  const isOwn = target.hostname === api.hostname
  if (target.protocol === 'ws:') return isOwn && api.protocol === 'http:'
  return target.protocol === 'wss:' && (isOwn || target.hostname.endsWith('.discord.gg'))
}
