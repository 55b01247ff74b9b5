/** One connection to the broker, from dialling to its end. */
import type { Clock } from '@sluice/sdk'
import type { MqttClient } from 'mqtt'
import type { BrokerAddress } from './broker-url.ts'
import { type ConnectionEnd, endOf } from './connection-end.ts'
import { createSubscriptions, type SubscriptionParts } from './subscriptions.ts'
import { type MessageParts, takeMessages } from './take-messages.ts'

export interface ConnectionSettings {
  readonly address: BrokerAddress
  readonly clientId: string
  readonly credentials: { readonly username?: string; readonly password?: string }
  readonly keepAliveSecs: number
}

export interface ConnectionParts extends MessageParts {
  readonly clock: Clock
  readonly subscriptions: SubscriptionParts
  /** The broker has let us in; `resumed`: it knows us, and has kept our messages. */
  onConnected(resumed: boolean): void
  /** Calls back when other subscriptions are wanted. Returns the way out. */
  onReload(callback: () => void): () => void
}

const CONNECT_TIMEOUT_MS = 15_000
/** How long the message at hand may take before we leave without acknowledging it, and how long leaving may take. */
const CLOSE_GRACE_MS = 300

/** Resolves when the connection has ended, within two `CLOSE_GRACE_MS` after `leaving` aborts. */
export async function holdConnection(settings: ConnectionSettings, parts: ConnectionParts, leaving: AbortSignal): Promise<ConnectionEnd> {
  const client = await dial(settings)
  const gone = new AbortController()
  const ended = new Promise<void>((resolve) => client.once('close', resolve))
  let wasConnected = false
  let end: ConnectionEnd | undefined
  const fail = (error: unknown): void => {
    end ??= endOf(error, wasConnected)
    client.stream.destroy()
  }
  // The library goes on behind bytes it could not read, and what came with them would stay away.
  client.on('error', fail)
  // Where an id is missing it has read -1, and would throw where nobody catches when it answers.
  client.on('packetreceive', (packet) => {
    if (packet.messageId === -1) delete packet.messageId
  })

  const { begun, settled } = takeMessages(client, parts, { gone: gone.signal, leaving, fail })
  const subscribe = createSubscriptions(client, parts.subscriptions)
  const follow = (): void => void begun().then(subscribe).catch(fail)
  let unfollow: (() => void) | undefined
  client.on('connect', ({ sessionPresent }) => {
    wasConnected = true
    parts.onConnected(sessionPresent)
    follow()
    unfollow = parts.onReload(follow)
  })

  const leave = async (): Promise<void> => {
    if (client.connected) {
      await Promise.race([settled(), parts.clock.sleep(CLOSE_GRACE_MS, gone.signal)])
      client.end()
      await parts.clock.sleep(CLOSE_GRACE_MS, gone.signal)
    }
    client.stream.destroy()
  }
  const onLeaving = (): void => void leave()
  leaving.addEventListener('abort', onLeaving, { once: true })
  if (leaving.aborted) onLeaving()

  await ended
  gone.abort()
  leaving.removeEventListener('abort', onLeaving)
  unfollow?.()
  return end ?? endOf(new Error('the broker closed the connection'), wasConnected)
}

async function dial({ address, clientId, credentials, keepAliveSecs }: ConnectionSettings): Promise<MqttClient> {
  const { connect } = await import('./mqtt-library.ts')
  return connect({
    ...address,
    ...credentials,
    clientId,
    keepalive: keepAliveSecs,
    clean: false,
    connectTimeout: CONNECT_TIMEOUT_MS,
    // One connection is one client: what came over the one can never be acknowledged over the next.
    reconnectPeriod: 0,
    resubscribe: false,
    // Else a stream of messages would keep it from ever asking whether the broker hears us.
    reschedulePings: false,
    timerVariant: 'native',
    // It would keep the bytes of every packet id there is, at ten megabytes.
    writeCache: false,
    // It would print the password where DEBUG asks for all it knows.
    log: () => undefined,
  })
}
