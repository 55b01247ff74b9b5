/**
 * The codes of sign-in links, which work once, on every node of a cluster. A restart may forget them: they live for a minute, or for ten where
 * another person gets them.
 */
import { randomBytes } from 'node:crypto'
import { oneTimeKeys } from '@sluice/kit'
import { type Host, type OneTimeKeys, type Role, sha256Hex } from '@sluice/sdk'

/** The time in which a link works for the person who made it. */
export const LINK_MS = 60_000
/** The time in which a link works that is sent to another person. */
const INVITATION_MS = 600_000
const LINKS_MAX = 16
/** All links belong to one owner: any holder of a code is signed in. */
const ANYONE = ''

interface SignInCode {
  readonly code: string
  readonly expiresAtMs: number
}

export class SignInLinks {
  readonly #host: Pick<Host, 'clock'>
  /** The roles of the codes, of which only the hash is kept. */
  readonly #links: OneTimeKeys<Role>
  readonly #invitations: OneTimeKeys<Role>

  constructor(host: Pick<Host, 'clock' | 'service'>) {
    this.#host = host
    const bounds = { perOwnerMax: LINKS_MAX, allMax: LINKS_MAX }
    this.#links = oneTimeKeys(host, 'dashboard links', { ttlMs: LINK_MS, ...bounds })
    this.#invitations = oneTimeKeys(host, 'dashboard invitations', { ttlMs: INVITATION_MS, ...bounds })
  }

  /** Makes a code for the person who asks. At most 16 are pending: a further one drops the oldest. */
  create(role: Role): Promise<SignInCode> {
    return this.#add(this.#links, role, LINK_MS)
  }

  /** Makes a code for another person. At most 16 are pending: a further one drops the oldest. */
  invite(role: Role): Promise<SignInCode> {
    return this.#add(this.#invitations, role, INVITATION_MS)
  }

  async #add(keys: OneTimeKeys<Role>, role: Role, ttlMs: number): Promise<SignInCode> {
    const code = randomBytes(32).toString('base64url')
    const expiresAtMs = this.#host.clock.nowMs() + ttlMs
    await keys.add(ANYONE, sha256Hex(code), role)
    return { code, expiresAtMs }
  }

  /** Resolves to the role of a code and forgets the code; to undefined if it is unknown, used or expired. */
  async redeem(code: string): Promise<Role | undefined> {
    const key = sha256Hex(code)
    return (await this.#links.take(ANYONE, key)) ?? this.#invitations.take(ANYONE, key)
  }
}
