/** Registering a passkey: the options for the authenticator, and the passkey it made of them. */
import { AppError, type Host, type Role } from '@sluice/sdk'
import type { RegisterFinish } from './bodies.ts'
import { createChallenges } from './challenges.ts'
import { challengeIn } from './client-data.ts'
import type { WebauthnConfig } from './config.ts'
import { ALGORITHMS } from './library.ts'
import { DEVICES_MAX, descriptorOf, PENDING_PER_DEVICE_MAX, TIMEOUT_MS } from './options.ts'
import type { Passkey, Passkeys } from './passkeys.ts'
import { verifyRegistration } from './verify-registration.ts'

export interface NewUser {
  readonly user_id: string
  readonly user_name: string
  readonly role: Role
}

/** `device`: whose token the request came with. */
export interface Registrations {
  start(user: NewUser, device: string | null): Promise<object>
  /** Throws `invalid_request` for what is no passkey for this gateway, `conflict` for one it has or has no room for. */
  finish(body: RegisterFinish, device: string | null): Promise<Passkey>
}

export function createRegistrations(host: Host, config: WebauthnConfig, passkeys: Passkeys): Registrations {
  const { rp_id: rpId, rp_origin: origin, rp_name } = config
  const challenges = createChallenges<NewUser>({ clock: host.clock, principalsMax: DEVICES_MAX, perPrincipalMax: PENDING_PER_DEVICE_MAX })

  return {
    async start(user, device) {
      await passkeys.checkRoom(user.user_id)
      const known = (await passkeys.of(user.user_id)).map(descriptorOf)
      const challenge = challenges.issue(device ?? '', user)
      const rp = { id: rpId, name: rp_name }
      const id = Buffer.from(user.user_id).toString('base64url')
      const parameters = ALGORITHMS.map(({ alg }) => ({ type: 'public-key', alg }))
      const attestation = 'none'
      return {
        challenge,
        rp,
        user: { id, name: user.user_name, display_name: user.user_name },
        pub_key_cred_params: parameters,
        timeout: TIMEOUT_MS,
        attestation,
        exclude_credentials: known.map(({ type, id: credential }) => ({ type, id: credential })),
        authenticator_selection: { resident_key: 'preferred', user_verification: 'required' },
        public_key: {
          challenge,
          rp,
          user: { id, name: user.user_name, displayName: user.user_name },
          pubKeyCredParams: parameters,
          timeout: TIMEOUT_MS,
          attestation,
          excludeCredentials: known,
          authenticatorSelection: { residentKey: 'preferred', requireResidentKey: false, userVerification: 'required' },
        },
      }
    },
    async finish(body, device) {
      const challenge = body.challenge ?? challengeIn(body.client_data_json)
      const user = challenges.take(device ?? '', challenge)
      if (!user) throw new AppError('invalid_request', 'No pending registration for this challenge')
      const outcome = await verifyRegistration(body, challenge, { rpId, origin })
      if ('fault' in outcome) {
        const { fault, detail } = outcome
        host.log.warn('a passkey was not registered', { user: user.user_id, reason: detail ?? fault })
        throw new AppError('invalid_request', `The passkey cannot be registered: ${fault}`)
      }
      const { label, transports } = body
      const passkey: Passkey = {
        ...outcome.passkey,
        label,
        transports,
        registeredAtMs: host.clock.nowMs(),
        registeredBy: device === null ? null : ((await host.service('pairing')?.originOf(device)) ?? device),
        role: user.role,
        lastUsedAtMs: null,
        disabledAtMs: null,
      }
      await passkeys.add(user.user_id, user.user_name, passkey)
      host.log.info('a passkey was registered', { user: user.user_id, label, device: device ?? 'none' })
      return passkey
    },
  }
}
