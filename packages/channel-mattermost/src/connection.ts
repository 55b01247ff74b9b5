/** One connection of the channel: learns who the bot is, connects or resumes, takes in events, and has missed messages read. */
import { members, text } from '@sluice/kit/foreign-json'
import { AppError, type Deliver, type Host, type ListenContext } from '@sluice/sdk'
import type { MattermostApi } from './api.ts'
import { accountOf, type MattermostConfig } from './config.ts'
import { type MattermostCursors, readsFromMs, startAfter } from './cursors.ts'
import { isId } from './ids.ts'
import { Intake } from './intake.ts'
import type { Bot } from './parse.ts'
import { Places } from './places.ts'
import { MattermostSocket, type Resumption } from './socket.ts'

/** What outlives a connection, until the channel stops listening. */
interface Session {
  readonly signal: AbortSignal
  readonly intake: Intake
}

const BAD_TOKEN = 'The server refuses bot_token: it is wrong, was revoked, or the bot account is disabled'

export class Connection {
  readonly #host: Host
  readonly #config: MattermostConfig
  readonly #api: MattermostApi
  readonly #cursors: MattermostCursors
  #session: Session | undefined
  #resumption: Resumption | undefined
  #requests = 0

  constructor(host: Host, config: MattermostConfig, api: MattermostApi, cursors: MattermostCursors) {
    this.#host = host
    this.#config = config
    this.#api = api
    this.#cursors = cursors
  }

  /** See `Channel.listen`. */
  async listen(deliver: Deliver, context: ListenContext): Promise<void> {
    const { signal } = context
    try {
      const intake = await this.#intakeFor(deliver, context)
      const detail = await this.#receive(intake, context)
      if (!signal.aborted) throw new AppError('unavailable', `The connection to mattermost was closed ${detail}`.trim())
    } catch (error) {
      if (signal.aborted) return
      // A call that is wrong stays wrong until the operator changes the configuration, as a wrong URL does.
      throw error instanceof AppError && error.code === 'invalid_request' ? new AppError('forbidden', error.message) : error
    } finally {
      // The position stays before unfinished messages, so the next start reads them.
      if (signal.aborted) await this.#session?.intake.settled()
    }
  }

  /** Returns why the connection ended. */
  async #receive(intake: Intake, { signal, report }: ListenContext): Promise<string> {
    const options = {
      url: this.#api.url('/websocket'),
      token: this.#api.token,
      clock: this.#host.clock,
      signal,
      resumption: this.#resumption,
      nextRequest: () => ++this.#requests,
    }
    const socket = new MattermostSocket(options, {
      // A server that cannot be reached may still have the events later.
      onOpen: () => {
        this.#resumption = undefined
      },
      onReady: report.connected,
      onHello: () => intake.startCatchUp(),
      onEvent(event, data) {
        report.event()
        intake.take(event, data)
      },
    })
    const { resumption, detail } = await socket.run()
    this.#resumption = resumption
    return detail
  }

  async #intakeFor(deliver: Deliver, context: ListenContext): Promise<Intake> {
    const { signal } = context
    if (this.#session?.signal === signal && this.#resumption) return this.#session.intake
    if (this.#session?.signal !== signal) this.#resumption = undefined
    const bot = await this.#readBot(signal)
    if (this.#session?.signal === signal) return this.#session.intake
    const { channel_id: channel, mention_only: mentionOnly } = this.#config
    const places = new Places(this.#api, bot, { channel, mentionOnly })
    if (readsFromMs(this.#cursors) === undefined) {
      const last = (await places.list(signal)).map(({ lastPostAtMs }) => lastPostAtMs)
      startAfter(this.#cursors, Math.max(0, ...last))
    }
    const intake = new Intake(this.#host, this.#api, this.#cursors, places, bot, this.#config.allowed_users, deliver, context)
    this.#session = { signal, intake }
    return intake
  }

  /** Asks the server who the bot is, which also shows whether the token is valid. */
  async #readBot(signal: AbortSignal): Promise<Bot> {
    const { status, json } = await this.#api.call({ method: 'GET', path: '/users/me', signal, accept: [401] })
    if (status === 401) throw new AppError('forbidden', BAD_TOKEN)
    const { id, username } = members(json)
    if (!isId(id) || text(username) === '')
      throw new AppError('upstream', 'mattermost did not return the user of the bot (is url the address of the server?)')
    return { account: accountOf(this.#config), userId: id, username: text(username), threadReplies: this.#config.thread_replies }
  }
}
