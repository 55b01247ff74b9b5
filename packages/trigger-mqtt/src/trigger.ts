/** Keeps a connection to the broker in the background, from the registration of the feature until its close. */
import { type Backoff, backoffMs } from '@sluice/kit'
import type { Host, LinkHealth, Parts, Sops } from '@sluice/sdk'
import { BrokerConnection, type ConnectionEnd, endOf } from './broker-connection.ts'
import { BrokerSession } from './broker-session.ts'
import { brokerAddress, type MqttConfig } from './config.ts'

/** The procedure engine may become ready after this feature, so it is looked up repeatedly. */
const ENGINE_LOOKUP_MS = 250
const LONGEST_DELAY_MS = 60_000
/** Full jitter keeps clients that lost the same broker from reconnecting in step. */
const RECONNECT: Backoff = { firstMs: 1000, longestMs: LONGEST_DELAY_MS, fixedShare: 0 }

export class MqttTrigger {
  readonly #host: Host
  readonly #config: MqttConfig
  /** `host:port`, for log lines and the stored session. */
  readonly #broker: string
  readonly #session: BrokerSession
  readonly #leaving = new AbortController()
  #running: Promise<void> | undefined
  #state: LinkHealth['state'] = 'connecting'
  /** The failure that was logged last, so that a lasting failure is logged once. */
  #loggedReason: string | undefined

  constructor(host: Host, config: MqttConfig) {
    const address = brokerAddress(config.broker_url ?? '')
    this.#host = host
    this.#config = config
    this.#broker = `${address.host}:${address.port}`
    this.#session = new BrokerSession(host.keyValue)
  }

  /** `register` returns without waiting for the broker. `close` may be called twice, and before `register`. */
  parts(): Parts {
    return {
      links: () => [{ name: 'mqtt', state: this.#state }],
      register: async () => {
        this.#running ??= this.#run()
      },
      close: async () => {
        this.#leaving.abort()
        await this.#running
      },
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#leaving
    const { clock } = this.#host
    const sops = await this.#findEngine()
    if (!sops) return
    for (let failures = 0; !signal.aborted; ) {
      const startedMs = clock.monotonicMs()
      const end = await this.#connectOnce(sops)
      if (signal.aborted) return
      this.#log(end)
      // A connection that soon breaks again is a failure too.
      const hasLasted = end.wasConnected && clock.monotonicMs() - startedMs >= LONGEST_DELAY_MS
      failures = hasLasted ? 1 : failures + 1
      await clock.sleep(end.isRefusal ? LONGEST_DELAY_MS : backoffMs(failures - 1, RECONNECT), signal)
    }
  }

  async #findEngine(): Promise<Sops | undefined> {
    const { signal } = this.#leaving
    while (!signal.aborted) {
      const sops = this.#host.service('sops')
      if (sops) return sops
      await this.#host.clock.sleep(ENGINE_LOOKUP_MS, signal)
    }
    return undefined
  }

  /** Connects and resolves when the connection has ended or could not be opened. Never rejects. */
  async #connectOnce(sops: Sops): Promise<ConnectionEnd> {
    const onConnected = (isResumed: boolean) => {
      this.#state = 'ok'
      this.#host.log.info('connected to the MQTT broker', { broker: this.#broker, session: isResumed ? 'resumed' : 'new' })
    }
    try {
      const clientId = await this.#session.open(this.#broker, this.#config.client_id)
      const connection = await BrokerConnection.open(this.#host, this.#config, clientId, sops, this.#session, onConnected)
      return await connection.hold(this.#leaving.signal)
    } catch (error) {
      return endOf(error)
    } finally {
      this.#state = 'down'
    }
  }

  #log({ reason, isRefusal, wasConnected }: ConnectionEnd): void {
    const { log } = this.#host
    const fields = { broker: this.#broker, reason }
    if (wasConnected) log.warn('MQTT connection lost', fields)
    else if (reason === this.#loggedReason) log.debug('MQTT broker still unreachable', fields)
    else if (isRefusal) log.error('MQTT broker refused the connection', fields)
    else log.warn('MQTT broker unreachable', fields)
    this.#loggedReason = wasConnected ? undefined : reason
  }
}
