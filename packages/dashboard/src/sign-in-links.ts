/** The codes of sign-in links. A code works once and for a minute, so a restart may forget it. Only its hash is kept. */
import { randomBytes } from 'node:crypto'
import { BoundedMap } from '@sluice/kit'
import { type Clock, type Role, sha256Hex } from '@sluice/sdk'

/** The time in which a link works. */
export const LINK_MS = 60_000
const LINKS_MAX = 16

interface Link {
  readonly role: Role
  readonly expiresAtMs: number
}

export class SignInLinks {
  readonly #clock: Clock
  readonly #links = new BoundedMap<string, Link>(LINKS_MAX)

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Makes a code. At most 16 are pending: a further one drops the oldest. */
  create(role: Role): { readonly code: string; readonly expiresAtMs: number } {
    const code = randomBytes(32).toString('base64url')
    const expiresAtMs = this.#clock.nowMs() + LINK_MS
    this.#links.set(sha256Hex(code), { role, expiresAtMs })
    return { code, expiresAtMs }
  }

  /** Returns the role of a code and forgets the code. Undefined if it is unknown, used or expired. */
  redeem(code: string): Role | undefined {
    const hash = sha256Hex(code)
    const link = this.#links.get(hash)
    this.#links.delete(hash)
    return link && link.expiresAtMs > this.#clock.nowMs() ? link.role : undefined
  }
}
