/**
 * One event key for one message, however often it is delivered. A broker that has seen no acknowledgement delivers again, with
 * the same packet id and a flag; the key that was kept durably before the first attempt then makes it the same event.
 */
import { randomUUID } from 'node:crypto'
import { type KeyValue, sha256Hex } from '@sluice/sdk'

export interface Delivery {
  readonly topic: string
  readonly payload: Uint8Array
  /** Absent with QoS 0. */
  readonly packetId: number | undefined
  /** The broker says that it may have delivered it before. */
  readonly isRepeat: boolean
}

export interface EventKeys {
  /** Durable once it resolves, except for QoS 0, which is never delivered again. */
  keyOf(delivery: Delivery): Promise<string>
  /** The broker knows that these were acknowledged: whatever comes under their packet ids is another message. */
  forget(packetIds: readonly number[]): Promise<void>
  /** The broker has begun anew, and so have its packet ids. */
  forgetAll(): Promise<void>
}

const PREFIX = 'inflight/'
const PACKET_IDS_MAX = 65_535

const hashOf = ({ topic, payload }: Delivery): string => sha256Hex(Buffer.concat([Buffer.from(`${topic}\0`), payload]))

export function createEventKeys(keyValue: KeyValue): EventKeys {
  return {
    async keyOf(delivery) {
      const key = `mqtt:${randomUUID()}`
      if (delivery.packetId === undefined) return key
      const record = `${PREFIX}${delivery.packetId}`
      const hash = hashOf(delivery)
      const kept = delivery.isRepeat ? keptIn(await keyValue.get(record)) : undefined
      if (kept?.hash === hash) return kept.key
      await keyValue.set(record, { hash, key })
      return key
    },
    async forget(packetIds) {
      await Promise.all(packetIds.map((packetId) => keyValue.delete(`${PREFIX}${packetId}`)))
    },
    async forgetAll() {
      const records = await keyValue.list(PREFIX, PACKET_IDS_MAX)
      await Promise.all(records.map(({ key }) => keyValue.delete(key)))
    },
  }
}

const keptIn = (value: unknown): { readonly hash: string; readonly key: string } | undefined =>
  typeof value === 'object' &&
  value !== null &&
  'hash' in value &&
  'key' in value &&
  typeof value.key === 'string' &&
  typeof value.hash === 'string'
    ? { hash: value.hash, key: value.key }
    : undefined
