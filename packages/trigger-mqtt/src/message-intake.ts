/**
 * Takes the messages of one connection in order. A message is acknowledged once its runs are stored, and its event key is
 * deleted once the broker has confirmed the acknowledgement.
 */
import { signalScope } from '@sluice/kit'
import { errorText, type Logger } from '@sluice/sdk'
import type { IPublishPacket, MqttClient } from 'mqtt'
import type { BrokerSession } from './broker-session.ts'
import type { MessageReceiver } from './message-receiver.ts'
import { UnconfirmedAcks } from './unconfirmed-acks.ts'

export interface ConnectionLifetime {
  /** Aborts when nothing can be acknowledged any more. */
  readonly gone: AbortSignal
  /** Aborts when no further message is taken. The current one may still be acknowledged. */
  readonly leaving: AbortSignal
  /** Ends the connection. */
  fail(error: unknown): void
}

export class MessageIntake {
  readonly #client: MqttClient
  readonly #log: Logger
  readonly #session: BrokerSession
  readonly #receiver: MessageReceiver
  readonly #lifetime: ConnectionLifetime
  readonly #acks = new UnconfirmedAcks()
  #sessionReady = Promise.resolve()
  /** Settles when the current message is handled; undefined between messages. */
  #current: Promise<void> | undefined

  constructor(client: MqttClient, log: Logger, session: BrokerSession, receiver: MessageReceiver, lifetime: ConnectionLifetime) {
    this.#client = client
    this.#log = log
    this.#session = session
    this.#receiver = receiver
    this.#lifetime = lifetime
  }

  /**
   * Resolves once the records of a session that the broker has forgotten are deleted. Valid after the broker accepted the
   * connection.
   */
  get sessionReady(): Promise<void> {
    return this.#sessionReady
  }

  /** Resolves once the current message is handled. Never rejects. */
  async settled(): Promise<void> {
    await this.#current?.catch(() => undefined)
  }

  /** Installs the handlers of the client. Call it once, before the client has connected. */
  start(): void {
    const client = this.#client
    client.handleMessage = (packet, acknowledge) => {
      this.#current = this.#take(packet, acknowledge).finally(() => {
        this.#current = undefined
      })
      this.#current.catch((error: unknown) => this.#lifetime.fail(error))
    }
    client.on('packetreceive', (packet) => {
      if (packet.cmd === 'connack' && packet.returnCode === 0 && !packet.sessionPresent) this.#sessionReady = this.#session.forget()
      if (packet.cmd === 'pingresp') this.#pingAnswered()
    })
    client.on('packetsend', ({ cmd }) => {
      if (cmd === 'pingreq') this.#acks.pingSent()
    })
    const giveUp = client.onKeepaliveTimeout.bind(client)
    client.onKeepaliveTimeout = () => {
      if (!this.#current) return giveUp()
      // The client reads the answer to its ping only after the current message, so the missing answer does not mean that
      // the broker is gone. The ping also keeps the broker from closing the connection.
      client.sendPing()
      client.reschedulePing(true)
    }
  }

  async #take(packet: IPublishPacket, acknowledge: () => void): Promise<void> {
    const { gone, leaving } = this.#lifetime
    const { topic, payload, messageId: packetId } = packet
    await this.#sessionReady
    if (this.#isOver()) return
    using stop = signalScope([gone, leaving])
    const message = { topic, payload: Buffer.from(payload), packetId, isRepeat: packet.dup, isRetained: packet.retain }
    const result = await this.#receiver.receive(message, stop.signal)
    if (result === 'interrupted' || gone.aborted) return
    acknowledge()
    if (result === 'ignored' || packetId === undefined) return
    this.#acks.acknowledged(packetId)
    this.#requestConfirmation()
  }

  #pingAnswered(): void {
    this.#session.keys.forget(this.#acks.pingAnswered()).catch((error: unknown) => {
      this.#log.debug('MQTT event keys not deleted', { reason: errorText(error) })
    })
    this.#requestConfirmation()
  }

  #requestConfirmation(): void {
    if (this.#acks.shouldPing && !this.#isOver()) this.#client.sendPing()
  }

  #isOver(): boolean {
    return this.#lifetime.gone.aborted || this.#lifetime.leaving.aborted
  }
}
