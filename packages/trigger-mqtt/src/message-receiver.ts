/** Decides whether a message is an event, and fires it until the engine has stored its runs. */
import { retry } from '@sluice/kit'
import { AppError, type Host, type Sops } from '@sluice/sdk'
import type { Delivery, EventKeys } from './event-keys.ts'

/** The part of the procedure engine that the trigger uses. */
export type Procedures = Pick<Sops, 'matches' | 'fire' | 'topics' | 'onReload'>

export interface Message extends Delivery {
  /** Whether it is the last value of the topic, which the broker sends after a subscription. */
  readonly isRetained: boolean
}

/**
 * After `ignored` and `handled` the message may be acknowledged; an ignored message has left no event key. After `interrupted`
 * it must not be acknowledged, so that the broker delivers it again.
 */
export type ReceiveResult = 'ignored' | 'handled' | 'interrupted'

const PAYLOAD_BYTES_MAX = 64 * 1024
const RETRY_MS_MAX = 60_000

export class MessageReceiver {
  readonly #host: Host
  readonly #procedures: Procedures
  readonly #keys: EventKeys

  constructor(host: Host, procedures: Procedures, keys: EventKeys) {
    this.#host = host
    this.#procedures = procedures
    this.#keys = keys
  }

  /** Retries a message whose runs cannot be stored until `signal` aborts. Never rejects. */
  async receive(message: Message, signal: AbortSignal): Promise<ReceiveResult> {
    if (!this.#isEvent(message)) return 'ignored'
    const { clock, log } = this.#host
    const { topic } = message
    const payload = Buffer.from(message.payload).toString('utf8')
    const atMs = clock.nowMs()
    let key: string | undefined
    const fire = async (): Promise<ReceiveResult> => {
      key ??= await this.#keys.keyOf(message)
      // After an abort the next connection may have stored another key for this message.
      if (signal.aborted) return 'interrupted'
      try {
        await this.#procedures.fire({ source: 'mqtt', topic, payload, atMs, by: 'broker', key })
      } catch (error) {
        if (!(error instanceof AppError) || error.status >= 500) throw error
        log.error('dropped an MQTT message that the procedures refuse', { topic, error })
      }
      return 'handled'
    }
    const onFailure = (error: unknown, failures: number): void =>
      log.warn('runs of an MQTT message not stored, trying again', { topic, failures, error })
    return (await retry(fire, { clock, signal, longestMs: RETRY_MS_MAX, onFailure })) ?? 'interrupted'
  }

  #isEvent({ topic, payload, isRetained }: Message): boolean {
    const { log } = this.#host
    if (isRetained) log.debug('ignored a retained MQTT message', { topic })
    else if (!this.#procedures.matches('mqtt', topic)) log.debug('ignored an MQTT message that matches no trigger', { topic })
    else if (payload.length > PAYLOAD_BYTES_MAX)
      log.warn('refused an MQTT message that is too large', { topic, bytes: payload.length, bytesMax: PAYLOAD_BYTES_MAX })
    else return true
    return false
  }
}
