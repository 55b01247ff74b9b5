/** Carries out the requests of the crypto library as calls of the homeserver, and reads its settings of a room. */
import type * as Sdk from '@matrix-org/matrix-sdk-crypto-wasm'
import type { Members } from '@sluice/kit/foreign-json'

export type CryptoSdk = typeof Sdk

const MICROSECONDS = 1000n

/** The encryption of a room: the content of its state event `m.room.encryption`, and who may read its history. */
export interface RoomEncryption {
  readonly content: Members
  readonly historyVisibility: string
}

export interface OutgoingRequest {
  /** Absent for a request whose answer the library does not need. */
  readonly id?: string
  readonly type: Sdk.RequestType
  readonly body: string
  readonly event_type?: string
  readonly txn_id?: string
  readonly room_id?: string
  readonly version?: string
}

/** Tells whether a value is a request of the library. */
export const isOfType = (value: unknown): value is OutgoingRequest =>
  typeof value === 'object' && value !== null && 'type' in value && 'body' in value

/** Returns the method, the path and the query of a request of the library. */
export function endpointOf(
  { RequestType }: Pick<CryptoSdk, 'RequestType'>,
  { type, id = crypto.randomUUID(), event_type = '', txn_id = '', room_id = '', version }: OutgoingRequest,
) {
  const client = (method: 'POST' | 'PUT', ...path: string[]) => ({ method, path: ['client', 'v3', ...path] }) as const
  switch (type) {
    case RequestType.KeysUpload:
      return client('POST', 'keys', 'upload')
    case RequestType.KeysQuery:
      return client('POST', 'keys', 'query')
    case RequestType.KeysClaim:
      return client('POST', 'keys', 'claim')
    case RequestType.ToDevice:
      return client('PUT', 'sendToDevice', event_type, txn_id || id)
    case RequestType.SignatureUpload:
      return client('POST', 'keys', 'signatures', 'upload')
    case RequestType.RoomMessage:
      return client('PUT', 'rooms', room_id, 'send', event_type, txn_id || id)
    case RequestType.KeysBackup:
      return { ...client('PUT', 'room_keys', 'keys'), query: { version } }
    default:
      throw new Error(`The crypto library sent a request of the unknown type ${String(type)}`)
  }
}

/** Returns how the library encrypts in a room. */
export function encryptionSettings(
  { EncryptionSettings, HistoryVisibility }: Pick<CryptoSdk, 'EncryptionSettings' | 'HistoryVisibility'>,
  { content, historyVisibility }: RoomEncryption,
): Sdk.EncryptionSettings {
  const settings = new EncryptionSettings()
  const { rotation_period_ms: ms, rotation_period_msgs: count } = content
  if (isPositive(ms)) settings.rotationPeriod = BigInt(ms) * MICROSECONDS
  if (isPositive(count)) settings.rotationPeriodMessages = BigInt(count)
  settings.historyVisibility =
    {
      invited: HistoryVisibility.Invited,
      joined: HistoryVisibility.Joined,
      world_readable: HistoryVisibility.WorldReadable,
    }[historyVisibility] ?? HistoryVisibility.Shared
  return settings
}

const isPositive = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) > 0
