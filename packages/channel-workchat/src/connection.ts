/** One long connection: asks for its address, opens it, and has missed messages read. */
import { callProvider, urlUnder } from '@sluice/kit'
import { members, text, textAt } from '@sluice/kit/foreign-json'
import { AppError, type Deliver, type Host, type ListenContext } from '@sluice/sdk'
import type { WorkchatApi } from './api.ts'
import { botOpenId } from './bot.ts'
import { WORKCHAT_CN, type WorkchatConfig } from './config.ts'
import type { WorkchatCursors } from './cursors.ts'
import type { Identities } from './identities.ts'
import { Intake } from './intake.ts'
import { type ClientConfig, clientConfigOf, DEFAULT_CONFIG, LongConnection } from './socket.ts'

export interface ConnectionParts {
  readonly host: Host
  readonly config: WorkchatConfig
  /** The path of the section. */
  readonly path: string
  readonly api: WorkchatApi
  readonly cursors: WorkchatCursors
  readonly identities: Identities
}

interface Endpoint {
  readonly url: string
  readonly service: number
}

/** The platform refuses the app: its credentials are wrong, or it has no long connections. */
const FORBIDDEN = new Set([403, 514])
const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]']
const PLATFORM_HOST = /^(?:[\w-]+\.)*(?:larksuite\.com|larkoffice\.com|feishu\.cn)$/

export class Connection {
  readonly #parts: ConnectionParts
  #clientConfig: ClientConfig = DEFAULT_CONFIG
  /** Takes the messages of all connections until `signal` aborts. */
  #intake: { readonly signal: AbortSignal; readonly intake: Intake } | undefined

  constructor(parts: ConnectionParts) {
    this.#parts = parts
  }

  /** See `Channel.listen`. */
  async listen(deliver: Deliver, context: ListenContext): Promise<void> {
    const { signal, report } = context
    const { host } = this.#parts
    try {
      const intake = await this.#intakeFor(deliver, context)
      const { url, service } = await this.#endpoint(signal)
      const connection = await LongConnection.open({
        url,
        service,
        config: this.#clientConfig,
        clock: host.clock,
        log: host.log,
        signal,
        events: {
          onTraffic: () => report.event(),
          onEvent: (envelope) => intake.take(envelope),
          onConfig: (config) => {
            this.#clientConfig = config
          },
        },
      })
      report.connected()
      intake.startCatchUp()
      const ending = await connection.ending
      if (signal.aborted) return
      // The platform ends many connections at once when it restarts, and asks that not all clients return at once. A connection that
      // broke alone is opened again at the pace of the daemon, which has its own jitter.
      const retryAfterSecs = ending === 'closed' ? Math.floor(Math.random() * this.#clientConfig.reconnectNonceSecs) : 0
      throw new AppError('unavailable', 'The connection to workchat was closed', retryAfterSecs > 0 ? { retryAfterSecs } : {})
    } catch (error) {
      if (signal.aborted) return
      throw error
    }
  }

  /** Asks the platform for the id of the bot, once. */
  async #intakeFor(deliver: Deliver, context: ListenContext): Promise<Intake> {
    const { signal } = context
    if (this.#intake?.signal === signal) return this.#intake.intake
    const { config, api, host, cursors, identities } = this.#parts
    await identities.load()
    const openId = await botOpenId(api, signal)
    const bot = { account: config.app_id, openId, mentionOnly: config.mention_only, threadReplies: config.thread_replies }
    const intake = new Intake({ host, api, cursors, identities, bot }, deliver, context)
    this.#intake = { signal, intake }
    return intake
  }

  /** The address contains a ticket for one connection, so it must not be logged. */
  async #endpoint(signal: AbortSignal): Promise<Endpoint> {
    const { host, config, path, api } = this.#parts
    const { json } = await callProvider({
      fetch: host.fetch,
      provider: 'workchat',
      url: urlUnder(api.baseUrl, '/callback/ws/endpoint'),
      method: 'POST',
      headers: { locale: path === WORKCHAT_CN ? 'zh' : 'en' },
      body: { AppID: config.app_id, AppSecret: config.app_secret.reveal().trim() },
      signal,
    })
    const answer = members(json)
    if (answer.code !== 0) {
      const said = `workchat opened no long connection (${String(answer.code)}: ${text(answer.msg).slice(0, 200)})`
      if (typeof answer.code === 'number' && FORBIDDEN.has(answer.code)) throw new AppError('forbidden', said)
      throw new AppError('unavailable', said, { retryAfterSecs: this.#clientConfig.reconnectIntervalSecs })
    }
    this.#clientConfig = clientConfigOf(members(members(answer.data).ClientConfig), this.#clientConfig)
    const url = URL.parse(textAt(answer, 'data.URL'))
    if (!url || !isOwnAddress(url, api.baseUrl)) throw new AppError('upstream', 'workchat named a connection address that is not its own')
    return { url: url.href, service: Number(url.searchParams.get('service_id')) || 0 }
  }
}

/** Messages must not go to another host: an encrypted address of the platform, or the host of a configured `api_url`. */
function isOwnAddress({ protocol, hostname, host }: URL, baseUrl: string): boolean {
  const base = new URL(baseUrl)
  const isLocal = base.protocol === 'http:' && protocol === 'ws:' && (host === base.host || LOOPBACK.includes(hostname))
  return isLocal || (protocol === 'wss:' && (host === base.host || PLATFORM_HOST.test(hostname)))
}
