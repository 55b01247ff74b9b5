/** Bearer tokens of paired devices: who a request is, and when it stops being that (§5 rule 1). */

import { BoundedMap } from '@sluice/kit'
import type { HeaderReader, Runtime } from '@sluice/runtime'
import { AppError, type DeviceRow, type Role, sha256Hex } from '@sluice/sdk'
import { createLockout, type Lockout } from './lockout.ts'
import { createRevocations } from './revocations.ts'

export interface Principal {
  /** The paired device; null while no pairing is required. */
  readonly device: string | null
  /** The hash of the token that says so; null while no pairing is required. */
  readonly tokenHash: string | null
  /** `operator` while no pairing is required. */
  readonly role: Role
}

export interface Auth {
  /**
   * Who the bearer token says it is. A valid token always passes: the lockout of an address refuses and counts only requests
   * without one. `spared`: a failure does not count against the address (see `isSpared`). Throws `unauthorized`, or
   * `rate_limited` while the address is locked out. While no pairing is required nothing is looked at.
   */
  bearer(headers: HeaderReader, address: string, spared: boolean): Principal | Promise<Principal>
  /**
   * Whether a token that was good once still is; null stands for no token, which is good while no pairing is required. For
   * input that comes long after its credential, as over a socket.
   */
  isGood(tokenHash: string | null): boolean | Promise<boolean>
  /** To be called after this process removed a device or replaced its token: ends the streams that were opened with it. */
  checkStreams(): Promise<void>
  /** Counts failures of this and of every other credential of the gateway. */
  readonly lockout: Lockout
  /**
   * Calls `listener` with a token's hash within a second of its device's removal, of its replacement or of its expiry,
   * whichever process did it. Returns the way out; while nobody listens nothing is watched.
   */
  onRevoked(listener: (tokenHash: string) => void): () => void
}

const FAILURES_MAX = 10
const FAILURE_WINDOW_MS = 60_000
const LOCK_MS = 300_000
/** How stale a device's last-seen time may be. */
const TOUCH_MS = 60_000
const DEVICES_TOUCHED_MAX = 10_000
const TOKEN_LENGTH_MAX = 512

const PRINCIPAL_OPEN: Principal = Object.freeze({ device: null, tokenHash: null, role: 'operator' })

/** The token of `Authorization: Bearer <token>`, the scheme in any case; undefined for anything else. */
export function bearerToken(headers: HeaderReader): string | undefined {
  const header = headers.get('authorization')
  if (header === null || header.length > TOKEN_LENGTH_MAX || !/^bearer /i.test(header)) return undefined
  return header.slice(7).trim() || undefined
}

const unauthorized = (): AppError =>
  new AppError('unauthorized', 'Unauthorized: pair first by POST /pair, then send Authorization: Bearer <token>')

export function createAuth({ runtime }: { readonly runtime: Runtime }): Auth {
  const { clock, log } = runtime
  const { devices } = runtime.store
  const lockout = createLockout({ clock, failuresMax: FAILURES_MAX, windowMs: FAILURE_WINDOW_MS, lockMs: LOCK_MS })
  const revocations = createRevocations({ devices, clock, log })
  const touchedMs = new BoundedMap<string, number>(DEVICES_TOUCHED_MAX)

  const principalOf = (device: DeviceRow, tokenHash: string, address: string): Principal => {
    const nowMs = clock.nowMs()
    revocations.watch(tokenHash, device)
    if (nowMs - (touchedMs.get(device.id) ?? 0) >= TOUCH_MS) {
      touchedMs.set(device.id, nowMs)
      devices.touch([{ id: device.id, atMs: nowMs, address }]).catch((error) => log.warn('a last-seen time was not kept', { error }))
    }
    return { device: device.id, tokenHash, role: device.role }
  }

  const refuse = (address: string, spared: boolean, isGuess: boolean): never => {
    if (!spared) lockout.check(address)
    if (!spared && isGuess) lockout.fail(address)
    throw unauthorized()
  }

  return {
    lockout,
    isGood(tokenHash) {
      if (tokenHash === null) return !runtime.live().config.require_pairing
      const found = devices.findByTokenHash(tokenHash)
      return found instanceof Promise ? found.then((device) => device !== undefined) : found !== undefined
    },
    checkStreams: revocations.check,
    onRevoked: (listener) => revocations.listen(listener),
    bearer(headers, address, spared) {
      if (!runtime.live().config.require_pairing) return PRINCIPAL_OPEN
      const token = bearerToken(headers)
      if (!token) return refuse(address, spared, false)
      const hash = sha256Hex(token)
      const answer = (device: DeviceRow | undefined): Principal =>
        device ? principalOf(device, hash, address) : refuse(address, spared, true)
      const found = devices.findByTokenHash(hash)
      return found instanceof Promise ? found.then(answer) : answer(found)
    },
  }
}
