/** Registers passkeys: issues the options for the authenticator and checks the credential that it creates. */
import { AppError, type Host, type Role } from '@sluice/sdk'
import type { RegisterFinish } from './bodies.ts'
import { Challenges, DEVICE_CHALLENGES } from './challenges.ts'
import { challengeIn } from './client-data.ts'
import type { WebauthnConfig } from './config.ts'
import { ALGORITHMS, CEREMONY_TIMEOUT_MS } from './library.ts'
import { credentialDescriptor, isUser, type Passkey, type PasskeyStore } from './passkeys.ts'
import { verifyRegistration } from './verify-registration.ts'

export interface NewUser {
  readonly user_id: string
  readonly user_name: string
  readonly role: Role
}

/** `device` is the device whose token authenticates the request; null if the gateway requires no pairing. */
export class Registrations {
  readonly #host: Host
  readonly #config: WebauthnConfig
  readonly #passkeys: PasskeyStore
  readonly #challenges: Challenges<NewUser>

  constructor(host: Host, config: WebauthnConfig, passkeys: PasskeyStore) {
    this.#host = host
    this.#config = config
    this.#passkeys = passkeys
    this.#challenges = new Challenges(host, 'registration', DEVICE_CHALLENGES)
  }

  /** Returns the creation options twice: in snake_case, and as `public_key` in the spelling of browsers. Throws `conflict` at a limit. */
  async start(user: NewUser, device: string | null): Promise<object> {
    await this.#passkeys.checkRoom(user.user_id)
    const known = (await this.#passkeys.of(user.user_id)).map(credentialDescriptor)
    const challenge = await this.#challenges.issue(device ?? '', user)
    const rp = { id: this.#config.rp_id, name: this.#config.rp_name }
    const id = Buffer.from(user.user_id).toString('base64url')
    const parameters = ALGORITHMS.map(({ alg }) => ({ type: 'public-key', alg }))
    const attestation = 'none'
    return {
      challenge,
      rp,
      user: { id, name: user.user_name, display_name: user.user_name },
      pub_key_cred_params: parameters,
      timeout: CEREMONY_TIMEOUT_MS,
      attestation,
      exclude_credentials: known.map(({ type, id: credential }) => ({ type, id: credential })),
      authenticator_selection: { resident_key: 'preferred', user_verification: 'required' },
      public_key: {
        challenge,
        rp,
        user: { id, name: user.user_name, displayName: user.user_name },
        pubKeyCredParams: parameters,
        timeout: CEREMONY_TIMEOUT_MS,
        attestation,
        excludeCredentials: known,
        authenticatorSelection: { residentKey: 'preferred', requireResidentKey: false, userVerification: 'required' },
      },
    }
  }

  /**
   * Stores the new passkey. Throws `invalid_request` without a pending challenge or for a credential that does not verify, and
   * `conflict` for a known passkey or at a limit.
   */
  async finish(body: RegisterFinish, device: string | null): Promise<Passkey> {
    const { log, clock } = this.#host
    const challenge = body.challenge ?? challengeIn(body.client_data_json)
    const user = await this.#challenges.take(device ?? '', challenge)
    if (!user) throw new AppError('invalid_request', 'No pending registration for this challenge')
    const { rp_id: rpId, rp_origin: origin } = this.#config
    const outcome = await verifyRegistration(body, challenge, { rpId, origin })
    if ('fault' in outcome) {
      const { fault, detail } = outcome
      log.warn('passkey registration refused', { user: user.user_id, reason: detail ?? fault })
      throw new AppError('invalid_request', `The passkey cannot be registered: ${fault}`)
    }
    const passkey: Passkey = {
      ...outcome.passkey,
      label: body.label,
      transports: body.transports,
      registeredAtMs: clock.nowMs(),
      registeredBy: await this.#originOf(device),
      role: user.role,
      lastUsedAtMs: null,
      disabledAtMs: null,
    }
    await this.#passkeys.add(user.user_id, user.user_name, passkey)
    log.info('passkey registered', { user: user.user_id, label: passkey.label, device: device ?? 'none' })
    return passkey
  }

  /**
   * Returns the device whose revocation is to end the new passkey. A token from a passkey sign-in counts as a token of the device that
   * registered that passkey; where no device did, the sign-in itself is that device.
   */
  async #originOf(device: string | null): Promise<string | null> {
    if (device === null) return null
    const origin = (await this.#host.service('pairing')?.originOf(device)) ?? device
    return isUser(origin) ? device : origin
  }
}
