/** Pairing: makes one-time codes, and exchanges them for bearer tokens. The command line uses it without a daemon, too. */
import { randomBytes, randomUUID } from 'node:crypto'
import type { GatewayConfig } from '@sluice/config'
import { AppError, type Clock, type NewDevice, type Role, type Store, sha256Hex } from '@sluice/sdk'

/** Base 32 without the letters and digits that look alike: 40 bits in 8 characters. */
const ALPHABET = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789'
const CODE_LENGTH = 8
const CODES_PENDING_MAX = 3
const NAME_LENGTH_MAX = 100
/** Only operators make codes and tokens, and an operator's token can make every documented call. */
const ROLE_DEFAULT: Role = 'operator'

/** Makes a one-time code for a new device of this role. At most three codes are pending: a fourth drops the oldest. */
export async function newPairingCode(
  { devices }: Store,
  { pairing_code_ttl_secs }: GatewayConfig,
  clock: Clock,
  role: Role = ROLE_DEFAULT,
): Promise<{ readonly code: string; readonly expiresAtMs: number }> {
  const code = Array.from(randomBytes(CODE_LENGTH), (byte) => ALPHABET[byte % ALPHABET.length]).join('')
  const expiresAtMs = clock.nowMs() + pairing_code_ttl_secs * 1000
  await devices.addCode({ hash: hashOf(code), role, expiresAtMs }, CODES_PENDING_MAX)
  return { code, expiresAtMs }
}

export interface NewTokenOptions {
  readonly name: string
  readonly role?: Role
  /** Null: the token never expires. */
  readonly expiresAtMs?: number | null
  /** As in `DeviceRow`. */
  readonly issuedBy?: string | null
}

/** Makes a device and its token. The store keeps only a hash, so the token cannot be shown again. */
export async function newToken(
  { devices }: Store,
  { name, role = ROLE_DEFAULT, expiresAtMs = null, issuedBy = null }: NewTokenOptions,
  clock: Clock,
): Promise<{ readonly token: string; readonly device: string }> {
  const { token, row } = makeDevice(name, expiresAtMs, clock)
  await devices.add({ ...row, role, issuedBy })
  return { token, device: row.id }
}

/** Makes the device of a browser session, which is not stored yet, and its token. `hashOf` keeps sessions and bearer tokens apart. */
export function newSession(
  { name, role, issuedBy, expiresAtMs }: Required<NewTokenOptions>,
  clock: Clock,
  hashOf: (token: string) => string,
): { readonly token: string; readonly row: NewDevice } {
  const { row } = makeDevice(name, expiresAtMs, clock)
  const token = randomBytes(32).toString('base64url')
  return { token, row: { ...row, role, issuedBy, tokenHash: hashOf(token) } }
}

/** Exchanges a code for a device of the code's role. Undefined if the code is unknown, used or expired. */
export async function redeemCode(
  { devices }: Store,
  { code, name }: { readonly code: string; readonly name: string },
  clock: Clock,
): Promise<{ readonly token: string; readonly device: string; readonly name: string; readonly role: Role } | undefined> {
  const { token, row } = makeDevice(name, null, clock)
  const role = await devices.redeemCode(hashOf(code), row)
  return role && { token, device: row.id, name: row.name, role }
}

/** Replaces the token of a device; the old one is refused from then on. Undefined if the device does not exist. */
export async function rotateToken({ devices }: Store, device: string): Promise<string | undefined> {
  const token = makeToken()
  return (await devices.rotate(device, sha256Hex(token))) ? token : undefined
}

const makeToken = (): string => `sluice_${randomBytes(32).toString('hex')}`

function makeDevice(name: string, expiresAtMs: number | null, clock: Clock) {
  const token = makeToken()
  return { token, row: { id: randomUUID(), name: cleanName(name), tokenHash: sha256Hex(token), createdAtMs: clock.nowMs(), expiresAtMs } }
}

/** Ignores case, spaces and dashes, which people type differently. */
const hashOf = (code: string): string => sha256Hex(code.replace(/[\s-]/g, '').toUpperCase())

/** Throws `invalid_request` for a name of more than 100 characters, or with characters that cannot be seen. */
function cleanName(name: string): string {
  const clean = name.trim()
  if (clean.length > NAME_LENGTH_MAX || /\p{C}/u.test(clean)) {
    throw new AppError('invalid_request', `The name of a device may have at most ${NAME_LENGTH_MAX} characters, all of them visible`)
  }
  return clean === '' ? 'unnamed' : clean
}
