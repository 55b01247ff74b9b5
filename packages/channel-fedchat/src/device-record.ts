/** What operators see of the device: stored with its keys, so that commands show it without opening the device. */
import { members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import type { SecretStore } from '@sluice/sdk'

export const DEVICE_RECORD = 'state/device'

/** What an unverified device means, for the log and for doctor. */
export const UNVERIFIED = 'the device is not verified, so many clients do not give it the keys of their messages'
export const UNVERIFIED_FIX =
  'Set channels_config.fedchat.recovery_key to the recovery key of the account, or user_id and password for an account without cross-signing keys.'

export interface DeviceRecord {
  readonly user_id: string
  readonly device_id: string
  /** The Ed25519 key in groups of four characters, as clients show it. */
  readonly fingerprint: string
  /** Whether the account has signed the device, so that clients of verified users show it as trusted. */
  readonly is_verified: boolean
}

export async function readDeviceRecord(secrets: Pick<SecretStore, 'get'>): Promise<DeviceRecord | undefined> {
  const record = members(parsedOrUndefined((await secrets.get(DEVICE_RECORD)) ?? ''))
  const { user_id, device_id, fingerprint, is_verified } = record
  if (text(fingerprint) === '') return undefined
  return { user_id: text(user_id), device_id: text(device_id), fingerprint: text(fingerprint), is_verified: is_verified === true }
}
