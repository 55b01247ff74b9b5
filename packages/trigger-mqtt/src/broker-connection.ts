/** One connection to the broker, from its start to its end. */
import { endsWithin } from '@sluice/kit'
import { AppError, type Clock, type Host } from '@sluice/sdk'
import type { MqttClient } from 'mqtt'
import type { BrokerSession } from './broker-session.ts'
import { brokerAddress, type MqttConfig } from './config.ts'
import { MessageIntake } from './message-intake.ts'
import { MessageReceiver, type Procedures } from './message-receiver.ts'
import { Subscriptions } from './subscriptions.ts'

const CONNECT_TIMEOUT_MS = 15_000
/**
 * How long the current message may take before the connection closes without an acknowledgement, and how long closing may
 * take.
 */
const CLOSE_GRACE_MS = 300
/**
 * Return codes of CONNACK: protocol version, client id, user name or password, not authorized. Code 3 means a broker that is
 * not ready.
 */
const REFUSALS: readonly unknown[] = [1, 2, 4, 5]

export class BrokerConnection {
  readonly #client: MqttClient
  readonly #clock: Clock
  readonly #procedures: Procedures
  readonly #intake: MessageIntake
  readonly #subscriptions: Subscriptions
  readonly #onConnected: (isResumed: boolean) => void
  /** Aborts when the connection has closed. */
  readonly #gone = new AbortController()
  /** Aborts when the connection should close. */
  readonly #leaving = new AbortController()
  readonly #closed: Promise<void>
  #wasConnected = false
  /** Why the connection ends; undefined while it works. */
  #end: AppError | undefined
  #stopFollowing: (() => void) | undefined

  private constructor(
    client: MqttClient,
    host: Host,
    config: MqttConfig,
    procedures: Procedures,
    session: BrokerSession,
    onConnected: (isResumed: boolean) => void,
  ) {
    const topics = () => (config.topics.length > 0 ? config.topics : procedures.topics('mqtt'))
    const receiver = new MessageReceiver(host, procedures, session.keys)
    const lifetime = { gone: this.#gone.signal, leaving: this.#leaving.signal, fail: (error: unknown) => this.#fail(error) }
    this.#client = client
    this.#clock = host.clock
    this.#procedures = procedures
    this.#onConnected = onConnected
    this.#closed = new Promise((resolve) => client.once('close', resolve))
    this.#intake = new MessageIntake(client, host.log, session, receiver, lifetime)
    this.#subscriptions = new Subscriptions(client, host.keyValue, host.log, config.qos, topics)
    this.#observe()
  }

  /**
   * Starts to connect. `onConnected` is called when the broker accepts; `isResumed` means that it kept the session and its
   * messages.
   */
  static async open(
    host: Host,
    config: MqttConfig,
    clientId: string,
    procedures: Procedures,
    session: BrokerSession,
    onConnected: (isResumed: boolean) => void,
  ): Promise<BrokerConnection> {
    const { connect } = await import('./mqtt-library.ts')
    const { broker_url = '', username, password, keep_alive_secs } = config
    const client = connect({
      ...brokerAddress(broker_url),
      ...(username !== undefined && { username }),
      ...(password && { password: password.reveal() }),
      clientId,
      keepalive: keep_alive_secs,
      clean: false,
      connectTimeout: CONNECT_TIMEOUT_MS,
      // A message of one connection cannot be acknowledged on the next, so each connection has a client of its own.
      reconnectPeriod: 0,
      resubscribe: false,
      // With rescheduling, a steady stream of incoming messages would suppress all pings.
      reschedulePings: false,
      timerVariant: 'native',
      // The cache would hold the bytes of every packet id, about ten megabytes.
      writeCache: false,
      // The library's own log prints the password if DEBUG is set.
      log: () => undefined,
    })
    return new BrokerConnection(client, host, config, procedures, session, onConnected)
  }

  /**
   * Resolves when the connection has ended, at most 0.6 s after `leaving` aborts. Rejects with `forbidden` when the broker
   * refused the connection and would refuse it again, and with `unavailable` when it broke.
   */
  async hold(leaving: AbortSignal): Promise<void> {
    const leave = (): void => {
      this.#leaving.abort()
      void this.#close()
    }
    leaving.addEventListener('abort', leave, { once: true })
    if (leaving.aborted) leave()
    await this.#closed
    this.#gone.abort()
    leaving.removeEventListener('abort', leave)
    this.#stopFollowing?.()
    if (!leaving.aborted) throw this.#end ?? new AppError('unavailable', 'the broker closed the connection')
  }

  #observe(): void {
    const client = this.#client
    // The library would continue after bytes that it could not read, and lose the messages among them.
    client.on('error', (error) => this.#fail(error))
    // For a missing packet id the library reads -1, and throws outside of any handler when it answers with it.
    client.on('packetreceive', (packet) => {
      if (packet.messageId === -1) delete packet.messageId
    })
    this.#intake.start()
    client.on('connect', ({ sessionPresent }) => {
      this.#wasConnected = true
      this.#onConnected(sessionPresent)
      this.#subscribe()
      this.#stopFollowing = this.#procedures.onReload(() => this.#subscribe())
    })
  }

  #subscribe(): void {
    void this.#intake.sessionReady.then(() => this.#subscriptions.update()).catch((error: unknown) => this.#fail(error))
  }

  #fail(error: unknown): void {
    this.#end ??= endOf(error, this.#wasConnected)
    this.#client.stream.destroy()
  }

  async #close(): Promise<void> {
    if (this.#client.connected) {
      await endsWithin(this.#intake.settled(), CLOSE_GRACE_MS, this.#clock, this.#gone.signal)
      this.#client.end()
      await this.#clock.sleep(CLOSE_GRACE_MS, this.#gone.signal)
    }
    this.#client.stream.destroy()
  }
}

function endOf(error: unknown, wasConnected: boolean): AppError {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  // The error of a host with several addresses has a code but no message.
  const reason = (error instanceof Error ? error.message : String(error)) || String(code ?? 'unknown')
  return new AppError(REFUSALS.includes(code) && !wasConnected ? 'forbidden' : 'unavailable', reason)
}
