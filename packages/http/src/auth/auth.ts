/** Bearer tokens of paired devices: which device a request comes from, and until when its token is good. */

import { BoundedMap } from '@sluice/kit'
import type { Runtime } from '@sluice/runtime'
import { AppError, type DeviceRow, type Lockout, type Role, sha256Hex } from '@sluice/sdk'
import type { HeaderReader } from '../middleware/client-address.ts'
import { sessionHash } from './browser-cookie.ts'
import { ADDRESSES_MAX, checkLockout } from './lockout.ts'
import { createRevocations, type RevocationListener } from './revocations.ts'

/** The `tokenHash` of a caller on the control socket, which is not a hash: its connection is its credential and is never revoked. */
export const CONTROL_SOCKET = 'control socket'

export interface Principal {
  /** The paired device; null while no pairing is required. */
  readonly device: string | null
  /** The SHA-256 of the device's token; null while no pairing is required. */
  readonly tokenHash: string | null
  /** `operator` while no pairing is required. */
  readonly role: Role
}

/** The caller that a cookie names. */
export interface SessionPrincipal extends Principal {
  readonly device: string
  readonly row: DeviceRow
  readonly token: string
}

export interface Auth {
  /**
   * Resolves to the device that the bearer token belongs to. A valid token always passes: the lockout of an address refuses and
   * counts only requests without one. The failures of a `spared` request do not count against its address. Throws `unauthorized`,
   * or `rate_limited` while the address is locked out. While no pairing is required, the token is not looked at.
   */
  bearer(headers: HeaderReader, address: string, spared: boolean): Promise<Principal>
  /**
   * Resolves to the devices whose browser sessions the tokens of cookies are. More than one is a sign of an attack: a page on another
   * port of this host can give a browser a cookie of its own, so that a person would act, and tell secrets, in a foreign session.
   */
  sessions(tokens: readonly string[], address: string): Promise<readonly SessionPrincipal[]>
  /**
   * Whether a token that was valid before still is. Null means a connection without a token, which is valid while pairing is
   * not required. For input that comes long after its credential, for example over a WebSocket.
   */
  isGood(tokenHash: string | null): boolean | Promise<boolean>
  /** Ends the streams of removed devices and replaced tokens now. Call it after this process changed a device. */
  checkStreams(): Promise<void>
  /** Counts the failures of bearer tokens and of the webhook secret. */
  readonly lockout: Lockout
  /**
   * Calls `listener` with the hash of a token within a second of its device's removal, of its replacement or of its expiry,
   * also if another process did it, and when the store has not answered for a second. Returns an unsubscribe function. Without
   * listeners, nothing is watched.
   */
  onRevoked(listener: RevocationListener): () => void
}

const FAILURES_MAX = 10
const FAILURE_WINDOW_MS = 60_000
const LOCK_MS = 300_000
/** The time that a device's last-seen time may be out of date. */
const TOUCH_MS = 60_000
const DEVICES_TOUCHED_MAX = 10_000
const PRINCIPALS_KEPT_MAX = 1000
const TOKEN_LENGTH_MAX = 512

const PRINCIPAL_OPEN: Principal = Object.freeze({ device: null, tokenHash: null, role: 'operator' })

/** The token of `Authorization: Bearer <token>`, with the scheme in any case; undefined for anything else. */
export function bearerToken(headers: HeaderReader): string | undefined {
  const header = headers.get('authorization')
  if (header === null || header.length > TOKEN_LENGTH_MAX || !/^bearer /i.test(header)) return undefined
  return header.slice(7).trim() || undefined
}

const unauthorized = (): AppError =>
  new AppError('unauthorized', 'Unauthorized: pair first by POST /pair, then send Authorization: Bearer <token>')

export function createAuth(runtime: Runtime): Auth {
  const { clock, log } = runtime
  const { devices, counters } = runtime.store
  const numbers = { failuresMax: FAILURES_MAX, windowMs: FAILURE_WINDOW_MS, lockMs: LOCK_MS, keysMax: ADDRESSES_MAX }
  const lockout = counters.lockout('credentials', numbers)
  const revocations = createRevocations(devices, clock, log)
  const touchedMs = new BoundedMap<string, number>(DEVICES_TOUCHED_MAX)
  /** The streams of one device share its principal: texts of their own would take 80 bytes more for each. */
  const principals = new BoundedMap<string, Principal>(PRINCIPALS_KEPT_MAX)

  const principalOf = (tokenHash: string, { id, role }: DeviceRow): Principal => {
    const kept = principals.get(tokenHash)
    if (kept && kept.device === id && kept.role === role) return kept
    const principal = { device: id, tokenHash, role }
    principals.set(tokenHash, principal)
    return principal
  }

  /** Keeps the last-seen time of a device, at most once a minute. */
  const touch = ({ id }: DeviceRow, address: string): void => {
    const nowMs = clock.nowMs()
    if (nowMs - (touchedMs.get(id) ?? 0) < TOUCH_MS) return
    touchedMs.set(id, nowMs)
    devices.touch([{ id, atMs: nowMs, address }]).catch((error) => log.warn('last-seen time of a device not kept', { error }))
  }

  const refuse = async (address: string, spared: boolean, isGuess: boolean): Promise<never> => {
    if (!spared) await checkLockout(lockout, address)
    if (!spared && isGuess) await lockout.fail(address)
    throw unauthorized()
  }

  return {
    lockout,
    async bearer(headers, address, spared) {
      if (!runtime.snapshot().gateway.require_pairing) return PRINCIPAL_OPEN
      const token = bearerToken(headers)
      if (!token) return refuse(address, spared, false)
      const tokenHash = sha256Hex(token)
      const device = await devices.findByTokenHash(tokenHash)
      if (!device) return refuse(address, spared, true)
      revocations.watch(tokenHash, device)
      touch(device, address)
      return principalOf(tokenHash, device)
    },
    async sessions(tokens, address) {
      const found: SessionPrincipal[] = []
      for (const token of tokens) {
        const tokenHash = sessionHash(token)
        const row = await devices.findByTokenHash(tokenHash)
        if (!row || found.some(({ device }) => device === row.id)) continue
        revocations.watch(tokenHash, row)
        touch(row, address)
        found.push({ device: row.id, tokenHash, role: row.role, row, token })
      }
      return found
    },
    isGood(tokenHash) {
      if (tokenHash === CONTROL_SOCKET) return true
      if (tokenHash === null) return !runtime.snapshot().gateway.require_pairing
      const found = devices.findByTokenHash(tokenHash)
      return found instanceof Promise ? found.then((device) => device !== undefined) : found !== undefined
    },
    checkStreams: revocations.check,
    onRevoked: revocations.listen,
  }
}
