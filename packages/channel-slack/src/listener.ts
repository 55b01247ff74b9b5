/** The connection that is always there: opened, replaced before Slack ends it, and caught up on after every gap. */

import { type Members, textAt } from '@sluice/kit/foreign-json'
import { AppError, type ChannelHealth, type Deliver, errorText, type Host } from '@sluice/sdk'
import type { SlackConfig } from './config.ts'
import { type Connection, openConnection } from './connection.ts'
import type { Cursors } from './cursors.ts'
import { createIntake, type Intake } from './intake.ts'
import { isRefused, pauseMs } from './pause.ts'
import type { SlackApi } from './slack-api.ts'
import { isSlackUrl } from './slack-host.ts'
import { timestampAt } from './timestamp.ts'

export interface Listener {
  /** Resolves soon after `signal` aborts; failures are tried again with growing pauses. */
  listen(deliver: Deliver, signal: AbortSignal): Promise<void>
  health(): Pick<ChannelHealth, 'state' | 'detail' | 'lastEventAtMs'>
}

export interface ListenerOptions {
  readonly host: Host
  readonly config: SlackConfig
  readonly account: string
  readonly api: SlackApi
  readonly cursors: Cursors
}

/** A connection that lasted as long shows that all is well again. */
const STABLE_MS = 60_000

export function createListener({ host, config, account, api, cursors }: ListenerOptions): Listener {
  const { clock, log } = host
  let current: Connection | undefined
  let problem: string | undefined
  let lastEventAtMs: number | undefined

  const begin = async (deliver: Deliver, signal: AbortSignal): Promise<Intake> => {
    const bot = textAt(await api.call('auth.test', {}, { signal }), 'user_id')
    if (bot === '') throw new AppError('upstream', 'slack did not say who the bot is')
    await cursors.load()
    const { channel_ids, notification_channel_id: prompts } = config
    const named = [...channel_ids, ...(prompts === undefined ? [] : [prompts])].filter((channel) => channel !== '*')
    // Where a conversation is named, not even its first message is missed.
    for (const channel of named) cursors.know({ channel }, timestampAt(clock.nowMs()))
    return createIntake({ host, api, cursors, reader: { account, bot, config }, deliver, signal })
  }

  /** The connection before it works until this one does. */
  const connect = async (intake: Intake, signal: AbortSignal): Promise<Connection> => {
    const url = textAt(await api.call('apps.connections.open', {}, { signal, tokenKey: 'app_token' }), 'url')
    if (!isSlackUrl(url, api.url)) throw new AppError('upstream', 'slack named no address of its own to connect to')
    const onEnvelope = (type: string, payload: Members) => {
      lastEventAtMs = clock.nowMs()
      return intake.take(type, payload)
    }
    const onHello = () => {
      if (!current?.isOpen) intake.mend()
    }
    const next = await openConnection({ url, clock, signal, onHello, onEnvelope })
    void current?.retire()
    current = next
    problem = undefined
    return next
  }

  /** Resolves when another connection is needed. */
  const hold = async (connection: Connection): Promise<void> => {
    if ((await connection.ending) !== 'disabled') return
    connection.close()
    throw new AppError('forbidden', 'Socket mode was turned off in the settings of the app (link_disabled)')
  }

  return {
    async listen(deliver, signal) {
      let intake: Intake | undefined
      let failures = 0
      while (!signal.aborted) {
        let error: unknown
        const sinceMs = clock.monotonicMs()
        try {
          intake ??= await begin(deliver, signal)
          await hold(await connect(intake, signal))
        } catch (thrown) {
          if (signal.aborted) return
          error = thrown
          problem = errorText(error)
          log[isRefused(error) ? 'error' : 'warn']('slack cannot be connected to; trying again', { error })
        }
        if (error === undefined && clock.monotonicMs() - sinceMs >= STABLE_MS) failures = 0
        else await clock.sleep(pauseMs(failures++, error), signal)
      }
    },
    health() {
      const isOpen = current?.isOpen === true
      return {
        state: isOpen ? 'ok' : problem === undefined ? 'connecting' : 'down',
        ...(!isOpen && problem !== undefined && { detail: problem }),
        ...(lastEventAtMs !== undefined && { lastEventAtMs }),
      }
    },
  }
}
