/** Listens: connects, takes in what comes, and asks for what was missed. */

import { signalScope } from '@sluice/kit'
import { members } from '@sluice/kit/foreign-json'
import { AppError, type Clock, type Deliver, errorText, type Logger } from '@sluice/sdk'
import { callDiscord, type DiscordApi } from './api.ts'
import type { Cursors } from './cursors.ts'
import { BAD_TOKEN } from './fatal-close.ts'
import { type Ending, holdConnection } from './gateway-connection.ts'
import { createGuilds } from './guilds.ts'
import type { Health } from './health.ts'
import { missedIn, STALE_MS } from './history.ts'
import { createInflow, type Inflow } from './inflow.ts'
import { type Listener, parseMessage, placeOf } from './parse-message.ts'
import { parsePress } from './parse-press.ts'
import { isSnowflake, snowflakeAt } from './snowflake.ts'

export interface ListenDeps {
  readonly api: DiscordApi
  readonly listener: Omit<Listener, 'own' | 'nameOf' | 'isOwnRole'>
  readonly cursors: Cursors
  readonly health: Health
  readonly clock: Clock
  readonly log: Logger
  /** A conversation that is listened to although nobody has said anything in it yet. */
  readonly notifications: string | undefined
}

/** Before a refused connection is tried again: only a person can change what is wrong. */
export const REFUSED_MS = 900_000
const SESSIONS_WAIT_MS_MAX = 86_400_000
/** What the platform may ask for at most. */
const ASKED_SECS_MAX = 3600
const FLUSH_MS = 5000
const SEEN = 6

/**
 * See `Channel.listen`. Rejects with `unavailable` when the connection is gone for good: after a long wait if it was refused, and
 * not before the time the platform asked for.
 */
export async function listen(deps: ListenDeps, deliver: Deliver, signal: AbortSignal): Promise<void> {
  const { cursors, clock, log } = deps
  await cursors.load()
  const stopped = new AbortController()
  using either = signalScope([signal, stopped.signal])
  const flushing = flushNowAndThen(deps, either.signal)
  let ending: Ending
  let askedSecs = 0
  try {
    ending = await connected(deps, deliver, signal)
  } catch (error) {
    ending = signal.aborted ? { how: 'aborted' } : { how: 'failed', detail: errorText(error) }
    if (error instanceof AppError) askedSecs = Math.min(ASKED_SECS_MAX, error.retryAfterSecs ?? 0)
  } finally {
    stopped.abort()
    await flushing
  }
  if (ending.how === 'aborted') return
  deps.health.down(ending.detail)
  if (ending.how === 'refused') {
    log.error('the platform does not take the connection', { channel: 'discord', reason: ending.detail, retry_secs: REFUSED_MS / 1000 })
    await clock.sleep(REFUSED_MS, signal)
  } else if (askedSecs > 0) {
    log.warn('the platform asks for a pause', { channel: 'discord', reason: ending.detail, retry_secs: askedSecs })
    await clock.sleep(askedSecs * 1000, signal)
  }
  if (signal.aborted) return
  throw new AppError('unavailable', ending.detail)
}

async function connected(deps: ListenDeps, deliver: Deliver, signal: AbortSignal): Promise<Ending> {
  const { api, cursors, health, clock, log, notifications } = deps
  const gateway = await gatewayOf(deps, signal)
  if ('how' in gateway) return gateway
  let own = deps.listener.account
  const guilds = createGuilds({ own: () => own, clock })
  const listener: Listener = { ...deps.listener, own: () => own, nameOf: guilds.nameOf, isOwnRole: guilds.isOwnRole }
  const over = new AbortController()
  using either = signalScope([signal, over.signal])
  const history = { api, cursors, listener, log, nowMs: () => clock.nowMs() }
  const inflow = createInflow({
    deliver,
    cursors,
    clock,
    log,
    signal: either.signal,
    async *missedIn(channel, during) {
      // Whether an old message mentions a role of the bot is known only then.
      await guilds.settled(during)
      yield* missedIn(channel, history, during)
    },
    seen: async ({ seenPath }) => {
      await callDiscord(api, { method: 'POST', path: seenPath, body: { type: SEEN }, isAuthorized: false, signal })
    },
  })
  try {
    return await holdConnection({
      ...gateway,
      token: api.token,
      clock,
      log,
      signal,
      onReady(userId, servers) {
        own = userId
        guilds.expect(servers)
        health.connected()
        if (notifications !== undefined) cursors.follow(notifications, { after: snowflakeAt(clock.nowMs()) })
        const notBefore = new Date(clock.nowMs() - STALE_MS).toISOString()
        log.info('connected: conversations are asked for what was missed', {
          channel: 'discord',
          count: cursors.channels().length,
          notBefore,
        })
        inflow.catchUp()
      },
      onResumed: () => health.connected(),
      onLost: () => health.lost(),
      onDispatch(type, data) {
        health.received()
        guilds.dispatch(type, members(data))
        dispatch(type, data, { listener, inflow })
      },
    })
  } finally {
    // What is still under way is owed, and is asked for by the next connection.
    over.abort()
    await inflow.settled()
  }
}

/** Where to connect, and how many sessions are left for today. */
async function gatewayOf(
  { api, clock, log }: ListenDeps,
  signal: AbortSignal,
): Promise<{ readonly url: string; readonly sessionsMax: number } | Ending> {
  if (api.token === '') return { how: 'refused', detail: 'bot_token is empty' }
  const { status, json } = await callDiscord(api, { method: 'GET', path: '/gateway/bot', signal, accept: [401] })
  if (status === 401) return { how: 'refused', detail: BAD_TOKEN }
  const { url, session_start_limit } = members(json)
  const { remaining, reset_after } = members(session_start_limit)
  const target = URL.parse(typeof url === 'string' ? url : '')
  // The token goes there.
  if (!target || (target.protocol !== 'wss:' && !(target.protocol === 'ws:' && api.url.startsWith('http:')))) {
    throw new AppError('upstream', 'The answer of discord names no gateway')
  }
  const sessionsMax = typeof remaining === 'number' ? remaining : 1
  if (sessionsMax > 0) return { url: target.href.replace(/\/$/, ''), sessionsMax }
  const waitMs = Math.min(SESSIONS_WAIT_MS_MAX, Math.max(0, Number(reset_after) || 0))
  log.warn('the sessions the platform allows in a day are used up', { channel: 'discord', wait_secs: Math.ceil(waitMs / 1000) })
  await clock.sleep(waitMs, signal)
  return { how: 'failed', detail: 'The sessions the platform allows in a day were used up' }
}

function dispatch(type: string, data: unknown, { listener, inflow }: { readonly listener: Listener; readonly inflow: Inflow }): void {
  const event = members(data)
  if (type === 'MESSAGE_CREATE') {
    const place = placeOf(listener, event)
    if (place && isSnowflake(event.id)) inflow.message(place, { id: event.id, inbound: parseMessage(listener, event, place) })
  } else if (type === 'INTERACTION_CREATE') {
    const press = parsePress(listener, event)
    if (press) inflow.press(press)
  }
}

/** Duplicates after a crash are harmless, so that not every message costs a write. The last write is made after the end. */
async function flushNowAndThen({ cursors, clock, log }: ListenDeps, signal: AbortSignal): Promise<void> {
  for (let isOver = false; !isOver; ) {
    await clock.sleep(FLUSH_MS, signal)
    isOver = signal.aborted
    await cursors.flush().catch((error: unknown) => log.warn('the state of conversations could not be kept', { channel: 'discord', error }))
  }
}
