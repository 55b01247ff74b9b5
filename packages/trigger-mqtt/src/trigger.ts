/** Keeps a connection to the broker in the background, from the registration of the feature until its close. */
import { Listener } from '@sluice/kit'
import type { Host, ListenContext, Parts, Sops } from '@sluice/sdk'
import { BrokerConnection } from './broker-connection.ts'
import { BrokerSession } from './broker-session.ts'
import { brokerAddress, type MqttConfig } from './config.ts'

/** The procedure engine may become ready after this feature, so it is looked up repeatedly. */
const ENGINE_LOOKUP_MS = 250

export class MqttTrigger {
  readonly #host: Host
  readonly #config: MqttConfig
  /** `host:port`, for log lines and the stored session. */
  readonly #broker: string
  readonly #session: BrokerSession
  readonly #leaving = new AbortController()
  readonly #listener: Listener
  #running: Promise<void> | undefined

  constructor(host: Host, config: MqttConfig) {
    const address = brokerAddress(config.broker_url ?? '')
    this.#host = host
    this.#config = config
    this.#broker = `${address.host}:${address.port}`
    this.#session = new BrokerSession(host.keyValue)
    this.#listener = new Listener({ ...host, fields: { broker: this.#broker }, connect: (context) => this.#connect(context) })
  }

  /** `register` returns without waiting for the broker. `close` may be called twice, and before `register`. */
  parts(): Parts {
    return {
      links: () => [{ name: 'mqtt', state: this.#listener.health.state }],
      register: async () => {
        this.#running ??= this.#listener.run(this.#leaving.signal)
      },
      close: async () => {
        this.#leaving.abort()
        await this.#running
      },
    }
  }

  async #connect({ signal, report }: ListenContext): Promise<void> {
    const sops = await this.#findEngine(signal)
    if (!sops) return
    const clientId = await this.#session.open(this.#broker, this.#config.client_id)
    // Without subscriptions, the broker has kept no message.
    const keepsMessages = await this.#session.hasSubscriptions()
    const onConnected = (isResumed: boolean): void => {
      report.connected()
      if (keepsMessages && !isResumed) report.gap({ why: 'the broker has lost the session and the messages that waited in it' })
      this.#host.log.info('connected to the MQTT broker', { broker: this.#broker, session: isResumed ? 'resumed' : 'new' })
    }
    const connection = await BrokerConnection.open(this.#host, this.#config, clientId, sops, this.#session, onConnected)
    await connection.hold(signal)
  }

  async #findEngine(signal: AbortSignal): Promise<Sops | undefined> {
    while (!signal.aborted) {
      const sops = this.#host.service('sops')
      if (sops) return sops
      await this.#host.clock.sleep(ENGINE_LOOKUP_MS, signal)
    }
    return undefined
  }
}
