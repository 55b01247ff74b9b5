/**
 * The connection to the platform's gateway, held by `@discordjs/ws`: heartbeats, silent connections and resuming are the
 * library's. Ours: the pauses between attempts, the daily budget of sessions, and when it is over.
 */
import type { SessionInfo } from '@discordjs/ws'
import { type Clock, errorText, type Logger } from '@sluice/sdk'
import { fatalClose } from './fatal-close.ts'
import { pauseMs } from './pause.ts'

export interface GatewayOptions {
  readonly url: string
  readonly token: string
  /** How many sessions may be begun. */
  readonly sessionsMax: number
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
  /** A session began. Earlier messages have to be fetched; one GUILD_CREATE event for each of the servers follows. */
  onReady(userId: string, servers: readonly unknown[]): void
  /** What was missed has come. */
  onResumed(): void
  onLost(): void
  onDispatch(type: string, data: unknown): void
}

/** `refused`: until somebody changes something. `failed`: worth another try. */
export type Ending = { readonly how: 'aborted' } | { readonly how: 'refused' | 'failed'; readonly detail: string }

/** Guilds, their messages, direct messages, and what is in them. */
export const INTENTS = 1 | 512 | 4096 | 32768
const HANDSHAKE_MS = 10_000
/** Longer than the handshake may take: the library leaves a connection without a listener for errors if it gives up first. */
const HELLO_MS = 20_000
const READY_MS = 15_000
/** In a row, none of which held. */
const ATTEMPTS_MAX = 5
const STABLE_MS = 60_000
/** The platform begins at most one session in so much time. */
const IDENTIFY_EVERY_MS = 5000

/** Resolves when it is over; the library makes a lost connection anew by itself. */
export async function holdConnection(options: GatewayOptions): Promise<Ending> {
  const { clock, log, signal } = options
  const { Encoding, WebSocketShard, WebSocketShardStatus } = await import('@discordjs/ws')
  const ended = Promise.withResolvers<Ending>()
  const over = new AbortController()
  let session: SessionInfo | null = null
  let sessions = 0
  let lastIdentifyMs = 0
  let failures = 0
  let upSinceMs: number | undefined
  let isOpen = false
  let isUnreachable = false

  const end = (ending: Ending): void => {
    if (over.signal.aborted) return
    over.abort()
    ended.resolve(ending)
    // One that is not open yet is closed when it is: the library would let go of it without closing it.
    if (isOpen) close()
  }
  const close = () => void shard.destroy({ reason: 'Over' })

  /** The library knows no other way to be held back. Once it is over it waits for ever, which costs nothing. */
  const beforeConnecting = async (): Promise<SessionInfo | null> => {
    if (failures > 1) await clock.sleep(pauseMs(failures), over.signal)
    return over.signal.aborted ? forever() : session
  }

  const beforeIdentifying = async (closed: AbortSignal): Promise<void> => {
    if (sessions >= options.sessionsMax) end({ how: 'failed', detail: 'The sessions the platform allows in a day are used up' })
    if (sessions > 0) await clock.sleep(lastIdentifyMs + IDENTIFY_EVERY_MS * (1 + Math.random() / 4) - clock.monotonicMs(), closed)
    if (over.signal.aborted) return forever()
    closed.throwIfAborted()
    sessions += 1
    lastIdentifyMs = clock.monotonicMs()
  }

  const shard = new WebSocketShard(
    {
      options: {
        token: options.token,
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
          url: options.url,
          shards: 1,
          session_start_limit: { total: options.sessionsMax, remaining: options.sessionsMax, reset_after: 0, max_concurrency: 1 },
        },
      },
      retrieveSessionInfo: () => (shard.status === WebSocketShardStatus.Idle ? beforeConnecting() : session),
      updateSessionInfo: (_shard, info) => {
        // The library forgets the session when the platform cannot be reached; it is good all the same.
        if (info !== null || !isUnreachable)
          session = info && { ...info, resumeURL: isWebSocketUrl(info.resumeURL) ? info.resumeURL : options.url }
      },
      waitForIdentify: (_shard, closed) => beforeIdentifying(closed),
    },
    0,
  )

  const isUp = (): void => {
    upSinceMs = clock.monotonicMs()
  }
  shard.on('hello', () => {
    isOpen = true
    isUnreachable = false
    if (over.signal.aborted) close()
  })
  shard.on('ready', ({ user, guilds }) => {
    isUp()
    options.onReady(user.id, guilds ?? [])
  })
  shard.on('resumed', () => {
    isUp()
    options.onResumed()
  })
  shard.on('dispatch', ({ t, d }) => {
    if (!over.signal.aborted) options.onDispatch(t, d)
  })
  shard.on('socketError', (error) => {
    isUnreachable = true
    log.debug('the gateway cannot be reached', { channel: 'discord', reason: errorText(error) })
  })
  // It says in words what the code of `closed` says.
  shard.on('error', () => undefined)
  shard.on('closed', (code) => {
    isOpen = false
    if (over.signal.aborted) return
    const held = upSinceMs === undefined ? 0 : clock.monotonicMs() - upSinceMs
    upSinceMs = undefined
    failures = held >= STABLE_MS ? 1 : failures + 1
    options.onLost()
    const detail = fatalClose(code)
    log.info('the gateway closed the connection', { channel: 'discord', code, failures })
    if (detail !== undefined) end({ how: 'refused', detail })
    else if (failures >= ATTEMPTS_MAX) end({ how: 'failed', detail: `The gateway does not hold (last close code ${code})` })
  })

  const onAbort = () => end({ how: 'aborted' })
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  else shard.connect().catch(() => undefined)
  const ending = await ended.promise
  signal.removeEventListener('abort', onAbort)
  return ending
}

const forever = (): Promise<never> => new Promise(() => undefined)

const isWebSocketUrl = (url: unknown): url is string => typeof url === 'string' && /^wss?:$/.test(URL.parse(url)?.protocol ?? '')
