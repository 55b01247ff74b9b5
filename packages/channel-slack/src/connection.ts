/** One connection in socket mode: opens it, has missed messages read after a gap, and lets another one replace it. */
import { textAt } from '@sluice/kit/foreign-json'
import { AppError, type Deliver, type Host, type ListenContext } from '@sluice/sdk'
import { isSlackUrl, type SlackApi } from './api.ts'
import type { SlackConfig } from './config.ts'
import type { SlackCursors } from './cursors.ts'
import { Intake } from './intake.ts'
import { SocketConnection } from './socket.ts'
import { timestampAt } from './timestamp.ts'

export class Connection {
  readonly #host: Host
  readonly #config: SlackConfig
  readonly #account: string
  readonly #api: SlackApi
  readonly #cursors: SlackCursors
  /** The latest connection that Slack has accepted. */
  #latest: SocketConnection | undefined
  /** Takes the messages of all connections until `signal` aborts. */
  #intake: { readonly signal: AbortSignal; readonly intake: Intake } | undefined

  constructor(host: Host, config: SlackConfig, account: string, api: SlackApi, cursors: SlackCursors) {
    this.#host = host
    this.#config = config
    this.#account = account
    this.#api = api
    this.#cursors = cursors
  }

  /** See `Channel.listen`. When Slack asks for another connection, this one drains while that one begins. */
  async listen(deliver: Deliver, context: ListenContext): Promise<void> {
    const { signal, report } = context
    try {
      const intake = await this.#intakeFor(deliver, context)
      const socket = await this.#open(intake, context)
      const ending = await socket.ending
      if (signal.aborted) return
      if (ending === 'closed') throw new AppError('unavailable', 'The connection to slack was closed')
      if (ending === 'disabled') {
        socket.close()
        throw new AppError('forbidden', 'Socket mode was turned off in the settings of the app (link_disabled)')
      }
      await Promise.race([report.replace(), socket.closed])
      await socket.drain()
    } catch (error) {
      if (signal.aborted) return
      // A call that is wrong stays wrong until the operator changes the app, as a missing scope does.
      throw error instanceof AppError && error.code === 'invalid_request' ? new AppError('forbidden', error.message) : error
    }
  }

  /** Asks Slack for the bot's user id, and follows the configured conversations from now on. */
  async #intakeFor(deliver: Deliver, context: ListenContext): Promise<Intake> {
    const { signal } = context
    if (this.#intake?.signal === signal) return this.#intake.intake
    const userId = textAt(await this.#api.call('auth.test', {}, { signal }), 'user_id')
    if (userId === '') throw new AppError('upstream', 'slack did not return the user id of the bot')
    const { channel_ids, notification_channel_id: notificationChannel } = this.#config
    const configured = [...channel_ids, ...(notificationChannel === undefined ? [] : [notificationChannel])]
    for (const channel of configured) {
      // Following a configured conversation before its first message ensures that even that one is not missed.
      if (channel !== '*') this.#cursors.follow(channel, { after: timestampAt(this.#host.clock.nowMs()) })
    }
    const bot = { account: this.#account, userId, config: this.#config }
    const intake = new Intake(this.#host, this.#api, this.#cursors, bot, deliver, context)
    this.#intake = { signal, intake }
    return intake
  }

  async #open(intake: Intake, { signal, report }: ListenContext): Promise<SocketConnection> {
    const url = textAt(await this.#api.call('apps.connections.open', {}, { signal, tokenKey: 'app_token' }), 'url')
    if (!isSlackUrl(url, this.#api.url)) throw new AppError('upstream', 'slack named a connection address that is not its own')
    const onHello = (): void => {
      if (!this.#latest?.isOpen) intake.startCatchUp()
    }
    const onEnvelope: Intake['take'] = (type, payload) => {
      report.event()
      return intake.take(type, payload)
    }
    const socket = await SocketConnection.open(url, this.#host.clock, { onHello, onEnvelope }, signal)
    this.#latest = socket
    report.connected()
    return socket
  }
}
