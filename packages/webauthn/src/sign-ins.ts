/** Signs in with passkeys: issues a challenge, and a bearer token for the signature over it (docs/contract.md#http-api). */
import { AppError, type Host } from '@sluice/sdk'
import type { SignedIn, SignInFinish } from './bodies.ts'
import { Challenges, DEVICE_CHALLENGES } from './challenges.ts'
import { challengeIn } from './client-data.ts'
import type { WebauthnConfig } from './config.ts'
import { CEREMONY_TIMEOUT_MS } from './library.ts'
import { credentialDescriptor, issuerOf, type Passkey, type PasskeyStore } from './passkeys.ts'
import { type SignedCounter, verifySignIn } from './verify-sign-in.ts'

const TOKEN_MS = 86_400_000
/** Bounds the challenges of all callers without a token. The route limits the calls of one address. */
const ANONYMOUS_CHALLENGES = { principalsMax: 1, perPrincipalMax: 10_000 }

/** The caller: a paired device, or a browser that has no token yet. */
export type Caller = { readonly device: string | null } | 'anonymous'

/** The user that a challenge is for; null accepts a passkey of any user. */
interface Purpose {
  readonly userId: string | null
}

interface LogFields {
  readonly user?: string
  readonly label?: string
}

export class SignIns {
  readonly #host: Host
  readonly #config: WebauthnConfig
  readonly #passkeys: PasskeyStore
  readonly #ofDevices: Challenges<Purpose>
  readonly #ofAnonymous: Challenges<Purpose>

  constructor(host: Host, config: WebauthnConfig, passkeys: PasskeyStore) {
    this.#host = host
    this.#config = config
    this.#passkeys = passkeys
    this.#ofDevices = new Challenges(host, 'sign-in', DEVICE_CHALLENGES)
    this.#ofAnonymous = new Challenges(host, 'anonymous sign-in', ANONYMOUS_CHALLENGES)
  }

  /**
   * Returns the request options twice: in snake_case, and as `public_key` in the spelling of browsers. Without a user, the
   * browser may use any passkey of this gateway. Throws `invalid_request` for a user without a usable passkey.
   */
  async start(caller: Caller, userId?: string): Promise<object> {
    const usable = userId === undefined ? [] : (await this.#passkeys.of(userId)).filter(({ disabledAtMs }) => disabledAtMs === null)
    if (userId !== undefined && usable.length === 0) throw new AppError('invalid_request', `No registered credentials for user '${userId}'`)
    const challenge = await this.#challengesOf(caller).issue(principalOf(caller), { userId: userId ?? null })
    const { rp_id: rpId } = this.#config
    const allowed = usable.map(credentialDescriptor)
    return {
      challenge,
      rp_id: rpId,
      allow_credentials: allowed.map(({ type, id }) => ({ type, id })),
      timeout: CEREMONY_TIMEOUT_MS,
      user_verification: 'required',
      public_key: { challenge, rpId, allowCredentials: allowed, timeout: CEREMONY_TIMEOUT_MS, userVerification: 'required' },
    }
  }

  /**
   * Returns a new bearer token. Throws `invalid_request` without a pending challenge, and `unauthorized` for every other
   * failure; only the log names the reason.
   */
  async finish(body: SignInFinish, caller: Caller): Promise<SignedIn> {
    const { clock, log } = this.#host
    const issueToken = this.#host.service('issueToken')
    if (!issueToken) throw new AppError('unavailable', 'This host does not issue tokens')
    const { userId, passkey } = await this.verify(body, caller)
    const expiresAtMs = clock.nowMs() + TOKEN_MS
    const issued = await issueToken({
      name: `passkey ${passkey.label}`,
      role: passkey.role,
      expiresAtMs,
      issuedBy: issuerOf(userId, passkey),
    })
    log.info('passkey sign-in', { user: userId, label: passkey.label, device: issued.deviceId })
    return { ...issued, userId, expiresAtMs }
  }

  /** Returns the passkey that signed. Throws as `finish` does. */
  async verify(body: SignInFinish, caller: Caller): Promise<{ userId: string; passkey: Passkey }> {
    const challenge = body.challenge ?? challengeIn(body.client_data_json)
    const purpose = await this.#challengesOf(caller).take(principalOf(caller), challenge)
    if (!purpose) throw new AppError('invalid_request', 'No pending authentication for this challenge')
    return this.#verify(body, challenge, purpose)
  }

  #challengesOf(caller: Caller): Challenges<Purpose> {
    return caller === 'anonymous' ? this.#ofAnonymous : this.#ofDevices
  }

  /** Returns the passkey that signed, after its new counter is on disk. */
  async #verify(body: SignInFinish, challenge: string, purpose: Purpose): Promise<{ userId: string; passkey: Passkey }> {
    const handle = body.user_handle ?? undefined
    const userId = purpose.userId ?? userOf(handle) ?? this.#refuse('the user handle is missing or invalid')
    if (handle !== undefined && userOf(handle) !== userId) this.#refuse('the user handle names another user', { user: userId })
    const passkey = (await this.#passkeys.of(userId)).find(({ id }) => id === body.id)
    if (!passkey) return this.#refuse('the user has no such passkey', { user: userId })
    const { label } = passkey
    const { rp_id: rpId, rp_origin: origin } = this.#config
    const outcome = await verifySignIn(body, challenge, passkey, { rpId, origin })
    if ('fault' in outcome) return this.#refuse(outcome.fault, { user: userId, label })
    let used: Passkey | undefined
    await this.#passkeys.update(userId, passkey.id, (current) => {
      used = afterUse(current, outcome, this.#host.clock.nowMs())
      return used
    })
    if (!used) return this.#refuse('the passkey was deleted during the sign-in', { user: userId, label })
    if (used.disabledAtMs !== null)
      return this.#refuse('the passkey is disabled: its counter did not increase, so there may be a copy', { user: userId, label })
    return { userId, passkey: used }
  }

  #refuse(reason: string, fields: LogFields = {}): never {
    this.#host.log.warn('passkey refused', { ...fields, reason })
    throw new AppError('unauthorized', 'The passkey was not accepted')
  }
}

const principalOf = (caller: Caller): string => (caller === 'anonymous' ? '' : (caller.device ?? ''))

/** Returns the passkey after a verified signature: used, or disabled if its counter did not increase. An authenticator without a counter sends 0. */
function afterUse(passkey: Passkey, { counter, isBackedUp }: SignedCounter, nowMs: number): Passkey {
  if (passkey.disabledAtMs !== null) return passkey
  const isNewer = counter > passkey.counter || (counter === 0 && passkey.counter === 0)
  return isNewer ? { ...passkey, counter, isBackedUp, lastUsedAtMs: nowMs } : { ...passkey, disabledAtMs: nowMs }
}

/** Returns the user id in a user handle, or undefined if the handle is missing or is not UTF-8. */
function userOf(handle: string | undefined): string | undefined {
  if (handle === undefined) return undefined
  const userId = Buffer.from(handle, 'base64url').toString('utf8')
  return Buffer.from(userId).toString('base64url') === handle ? userId : undefined
}
