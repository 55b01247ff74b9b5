/**
 * Verifies the device of the bot with the recovery key: reads the cross-signing keys from the secret storage of the account and signs
 * the device with them (client-server API, "Secret storage" and "Cross-signing").
 */
import { createDecipheriv, hkdfSync } from 'node:crypto'
import { type Members, members, text } from '@sluice/kit/foreign-json'
import { AppError, equalDigests, hmacSha256 } from '@sluice/sdk'
import { isRefused, type MatrixApi } from '../api.ts'
import type { Device } from './device.ts'

const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
const PREFIX = [0x8b, 0x01]
const KEY_BYTES = 32
const ALGORITHM = 'm.secret_storage.v1.aes-hmac-sha2'

/** Reads the text that clients show as recovery or security key. Throws `config_invalid` for a mistyped one. */
export function readRecoveryKey(typed: string): Buffer {
  let value = 0n
  for (const char of typed.replaceAll(/\s/g, '')) {
    const digit = ALPHABET.indexOf(char)
    if (digit < 0) throw mistyped()
    value = value * 58n + BigInt(digit)
  }
  const bytes = Buffer.from(value.toString(16).padStart(2 * (KEY_BYTES + 3), '0'), 'hex')
  const isValid = bytes.length === KEY_BYTES + 3 && bytes[0] === PREFIX[0] && bytes[1] === PREFIX[1]
  // The last byte makes the parity of all bytes even.
  if (!isValid || bytes.reduce((parity, byte) => parity ^ byte, 0) !== 0) throw mistyped()
  return bytes.subarray(2, 2 + KEY_BYTES)
}

const mistyped = (): AppError =>
  new AppError('config_invalid', 'channels_config.fedchat.recovery_key is not a recovery key: a character is wrong or missing')

/** Signs the device unless it is signed. Throws `config_invalid` for a wrong key, and `not_found` for an account without secret storage. */
export async function verifyWithRecoveryKey(
  api: MatrixApi,
  device: Device,
  userId: string,
  recoveryKey: string,
  signal: AbortSignal,
): Promise<void> {
  const key = readRecoveryKey(recoveryKey)
  const data = (type: string) => accountData(api, userId, type, signal)
  const id = text((await data('m.secret_storage.default_key')).key)
  if (id === '')
    throw new AppError('not_found', 'The account of the bot has no secret storage, which a client creates with the recovery key')
  checkKey(key, await data(`m.secret_storage.key.${id}`))
  const secret = async (name: string): Promise<string> => {
    const { encrypted } = await data(`m.cross_signing.${name}`)
    return decryptSecret(key, `m.cross_signing.${name}`, members(members(encrypted)[id]))
  }
  await device.importCrossSigning(
    { master: await secret('master'), selfSigning: await secret('self_signing'), userSigning: await secret('user_signing') },
    signal,
  )
}

async function accountData(api: MatrixApi, userId: string, type: string, signal: AbortSignal): Promise<Members> {
  try {
    return await api.client('GET', ['user', userId, 'account_data', type], { signal })
  } catch (error) {
    if (isRefused(error, 'M_NOT_FOUND')) return {}
    throw error
  }
}

/** The description of a key has the code of 32 zero bytes, encrypted with it. */
function checkKey(key: Buffer, description: Members): void {
  if (description.algorithm !== ALGORITHM) throw new AppError('not_found', `The secret storage of the bot is not of the kind ${ALGORITHM}`)
  const { iv, mac } = description
  if (text(mac) === '') return
  const [aes, hmac] = keysFor(key, '')
  const cipher = createDecipheriv('aes-256-ctr', aes, Buffer.from(text(iv), 'base64'))
  const code = hmacSha256(hmac, cipher.update(Buffer.alloc(KEY_BYTES)))
  if (!equalDigests(code, Buffer.from(text(mac), 'base64'))) {
    throw new AppError('config_invalid', 'channels_config.fedchat.recovery_key is not the key of the secret storage of this account')
  }
}

function decryptSecret(key: Buffer, name: string, { iv, ciphertext, mac }: Members): string {
  const [aes, hmac] = keysFor(key, name)
  const encrypted = Buffer.from(text(ciphertext), 'base64')
  const code = hmacSha256(hmac, encrypted)
  if (encrypted.length === 0 || !equalDigests(code, Buffer.from(text(mac), 'base64'))) {
    throw new AppError('config_invalid', `The secret ${name} of the account cannot be decrypted with the recovery key`)
  }
  const decipher = createDecipheriv('aes-256-ctr', aes, Buffer.from(text(iv), 'base64'))
  return Buffer.concat([decipher.update(encrypted), decipher.final()]).toString()
}

function keysFor(key: Buffer, name: string): readonly [aes: Buffer, hmac: Buffer] {
  const derived = Buffer.from(hkdfSync('sha256', key, Buffer.alloc(KEY_BYTES), name, 2 * KEY_BYTES))
  return [derived.subarray(0, KEY_BYTES), derived.subarray(KEY_BYTES)]
}
