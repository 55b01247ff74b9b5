/** Keeps a connection open, replaces it before Slack ends it, and catches up after every gap. */
import { textAt } from '@sluice/kit/foreign-json'
import { AppError, type ChannelHealth, type Deliver, errorText, type Host } from '@sluice/sdk'
import type { SlackConfig } from './config.ts'
import type { Cursors } from './cursors.ts'
import { Intake } from './intake.ts'
import { isRefused, retryDelayMs } from './refusal.ts'
import { isSlackUrl, type SlackApi } from './slack-api.ts'
import { SocketConnection } from './socket-connection.ts'
import { timestampAt } from './timestamp.ts'

/** A connection that lasted this long resets the backoff. */
const STABLE_MS = 60_000

export class SlackListener {
  readonly #host: Host
  readonly #config: SlackConfig
  readonly #account: string
  readonly #api: SlackApi
  readonly #cursors: Cursors
  #connection: SocketConnection | undefined
  /** Why the latest attempt to connect failed; undefined after a successful one. */
  #problem: string | undefined
  #lastEventAtMs: number | undefined

  constructor(host: Host, config: SlackConfig, account: string, api: SlackApi, cursors: Cursors) {
    this.#host = host
    this.#config = config
    this.#account = account
    this.#api = api
    this.#cursors = cursors
  }

  /** See `Channel.listen`. Tries again after failures, with growing delays, and resolves soon after `signal` aborts. */
  async listen(deliver: Deliver, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#host
    let intake: Intake | undefined
    let failures = 0
    while (!signal.aborted) {
      let error: unknown
      const sinceMs = clock.monotonicMs()
      try {
        intake ??= await this.#createIntake(deliver, signal)
        await this.#untilReplaced(await this.#connect(intake, signal))
      } catch (thrown) {
        if (signal.aborted) return
        error = thrown
        this.#problem = errorText(error)
        log[isRefused(error) ? 'error' : 'warn']('slack connection failed, trying again', { error })
      }
      if (error === undefined && clock.monotonicMs() - sinceMs >= STABLE_MS) failures = 0
      else await clock.sleep(retryDelayMs(failures++, error), signal)
    }
  }

  /** See `Channel.health`. */
  health(): ChannelHealth {
    const isOpen = this.#connection?.isOpen === true
    return {
      state: isOpen ? 'ok' : this.#problem === undefined ? 'connecting' : 'down',
      ...(!isOpen && this.#problem !== undefined && { detail: this.#problem }),
      ...(this.#lastEventAtMs !== undefined && { lastEventAtMs: this.#lastEventAtMs }),
    }
  }

  /** Asks Slack for the bot's user id, loads the cursors, and follows the configured conversations from now on. */
  async #createIntake(deliver: Deliver, signal: AbortSignal): Promise<Intake> {
    const userId = textAt(await this.#api.call('auth.test', {}, { signal }), 'user_id')
    if (userId === '') throw new AppError('upstream', 'slack did not return the user id of the bot')
    await this.#cursors.load()
    const { channel_ids, notification_channel_id: notificationChannel } = this.#config
    const configured = [...channel_ids, ...(notificationChannel === undefined ? [] : [notificationChannel])]
    for (const channel of configured) {
      // Following a configured conversation before its first message ensures that even that one is not missed.
      if (channel !== '*') this.#cursors.follow({ channel }, timestampAt(this.#host.clock.nowMs()))
    }
    const bot = { account: this.#account, userId, config: this.#config }
    return new Intake(this.#host, this.#api, this.#cursors, bot, deliver, signal)
  }

  /** Opens a connection and then drains the previous one. */
  async #connect(intake: Intake, signal: AbortSignal): Promise<SocketConnection> {
    const { clock } = this.#host
    const url = textAt(await this.#api.call('apps.connections.open', {}, { signal, tokenKey: 'app_token' }), 'url')
    if (!isSlackUrl(url, this.#api.url)) throw new AppError('upstream', 'slack named a connection address that is not its own')
    const next = await SocketConnection.open(
      url,
      clock,
      {
        onHello: () => {
          if (!this.#connection?.isOpen) intake.startCatchUp()
        },
        onEnvelope: (type, payload) => {
          this.#lastEventAtMs = clock.nowMs()
          return intake.take(type, payload)
        },
      },
      signal,
    )
    void this.#connection?.drain()
    this.#connection = next
    this.#problem = undefined
    return next
  }

  /** Resolves when another connection is needed. Throws `forbidden` when the app has socket mode turned off. */
  async #untilReplaced(connection: SocketConnection): Promise<void> {
    if ((await connection.ending) !== 'disabled') return
    connection.close()
    throw new AppError('forbidden', 'Socket mode was turned off in the settings of the app (link_disabled)')
  }
}
