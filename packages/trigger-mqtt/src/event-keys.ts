/**
 * Gives each message one event key, however often the broker delivers it. Without an acknowledgement the broker delivers a
 * message again, with the same packet id and a repeat flag. The key is stored before the first attempt, so a repeat gets the same key.
 */
import { randomUUID } from 'node:crypto'
import { members } from '@sluice/kit/foreign-json'
import { type KeyValue, sha256Hex } from '@sluice/sdk'

export interface Delivery {
  readonly topic: string
  readonly payload: Uint8Array
  /** Absent with QoS 0. */
  readonly packetId: number | undefined
  /** Whether the broker may have delivered the message before. */
  readonly isRepeat: boolean
}

const PREFIX = 'inflight/'
const PACKET_IDS_MAX = 65_535

export class EventKeys {
  readonly #keyValue: KeyValue

  constructor(keyValue: KeyValue) {
    this.#keyValue = keyValue
  }

  /**
   * Returns the key, which is durable by then. A message with QoS 0 gets a key that is not stored, because it is never
   * repeated.
   */
  async keyOf(delivery: Delivery): Promise<string> {
    const key = `mqtt:${randomUUID()}`
    if (delivery.packetId === undefined) return key
    const record = `${PREFIX}${delivery.packetId}`
    const hash = hashOf(delivery)
    const stored = delivery.isRepeat ? members(await this.#keyValue.get(record)) : {}
    if (stored.hash === hash && typeof stored.key === 'string') return stored.key
    await this.#keyValue.set(record, { hash, key })
    return key
  }

  /**
   * Deletes the keys of messages whose acknowledgement the broker has confirmed. It may use their packet ids for other
   * messages.
   */
  async forget(packetIds: readonly number[]): Promise<void> {
    await Promise.all(packetIds.map((packetId) => this.#keyValue.delete(`${PREFIX}${packetId}`)))
  }

  /** Deletes all keys, because the broker has a new session with new packet ids. */
  async forgetAll(): Promise<void> {
    const records = await this.#keyValue.list(PREFIX, PACKET_IDS_MAX)
    await Promise.all(records.map(({ key }) => this.#keyValue.delete(key)))
  }
}

const hashOf = ({ topic, payload }: Delivery): string => sha256Hex(Buffer.concat([Buffer.from(`${topic}\0`), payload]))
