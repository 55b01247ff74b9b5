/** The codes of sign-in links. A code works once and for a minute, on every node of a cluster, so a restart may forget it. */
import { randomBytes } from 'node:crypto'
import { oneTimeKeys } from '@sluice/kit'
import { type Host, type OneTimeKeys, type Role, sha256Hex } from '@sluice/sdk'

/** The time in which a link works. */
export const LINK_MS = 60_000
const LINKS_MAX = 16
/** All links belong to one owner: any holder of a code is signed in. */
const ANYONE = ''

export class SignInLinks {
  readonly #host: Pick<Host, 'clock'>
  /** The roles of the codes, of which only the hash is kept. */
  readonly #roles: OneTimeKeys<Role>

  constructor(host: Pick<Host, 'clock' | 'service'>) {
    this.#host = host
    this.#roles = oneTimeKeys(host, 'dashboard links', { ttlMs: LINK_MS, perOwnerMax: LINKS_MAX, allMax: LINKS_MAX })
  }

  /** Makes a code. At most 16 are pending: a further one drops the oldest. */
  async create(role: Role): Promise<{ readonly code: string; readonly expiresAtMs: number }> {
    const code = randomBytes(32).toString('base64url')
    const expiresAtMs = this.#host.clock.nowMs() + LINK_MS
    await this.#roles.add(ANYONE, sha256Hex(code), role)
    return { code, expiresAtMs }
  }

  /** Resolves to the role of a code and forgets the code; to undefined if it is unknown, used or expired. */
  redeem(code: string): Promise<Role | undefined> {
    return this.#roles.take(ANYONE, sha256Hex(code))
  }
}
