/** What operators see of the device: stored with its keys, so that commands show it without opening the device. */
import { members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import type { SecretStore } from '@sluice/sdk'

export const DEVICE_RECORD = 'state/device'

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
