/** Signing in with a passkey: a challenge, and a bearer token for the signature over it (§5 rule 7). */
import { AppError, type Host, type IssuedToken } from '@sluice/sdk'
import type { SignInFinish } from './bodies.ts'
import { type Challenges, createChallenges } from './challenges.ts'
import { challengeIn } from './client-data.ts'
import type { WebauthnConfig } from './config.ts'
import { DEVICES_MAX, descriptorOf, PENDING_PER_DEVICE_MAX, TIMEOUT_MS } from './options.ts'
import type { Passkey, Passkeys } from './passkeys.ts'
import { verifySignIn } from './verify-sign-in.ts'

const TOKEN_MS = 86_400_000
/** Of everybody who is not signed in yet; the gateway limits how many one address can ask for. */
const PENDING_OPEN_MAX = 10_000

/** Who asks: a paired device, or somebody who has no token yet. */
export type Asker = { readonly device: string | null } | 'anybody'

export interface SignedIn extends IssuedToken {
  readonly userId: string
  readonly expiresAtMs: number
}

export interface SignIns {
  /** Without a user, any passkey of this gateway is asked for. Throws `invalid_request` for a user who has none to use. */
  start(asker: Asker, userId?: string): Promise<object>
  /** Throws `invalid_request` for no pending challenge, `unauthorized` for everything else that is not right, without saying what. */
  finish(body: SignInFinish, asker: Asker): Promise<SignedIn>
}

/** What a challenge is for: one user, or, for `null`, whoever the passkey says it is. */
interface Purpose {
  readonly userId: string | null
}

export function createSignIns(host: Host, config: WebauthnConfig, passkeys: Passkeys): SignIns {
  const { rp_id: rpId, rp_origin: origin } = config
  const ofDevices = createChallenges<Purpose>({ clock: host.clock, principalsMax: DEVICES_MAX, perPrincipalMax: PENDING_PER_DEVICE_MAX })
  const ofAnybody = createChallenges<Purpose>({ clock: host.clock, principalsMax: 1, perPrincipalMax: PENDING_OPEN_MAX })
  const pendingOf = (asker: Asker): [Challenges<Purpose>, string] =>
    asker === 'anybody' ? [ofAnybody, ''] : [ofDevices, asker.device ?? '']

  const refuse = (reason: string, fields: { readonly user?: string; readonly label?: string } = {}): never => {
    host.log.warn('a passkey was refused', { ...fields, reason })
    throw new AppError('unauthorized', 'The passkey was not accepted')
  }

  /** The passkey that signed, with its counter advanced on disk. */
  const prove = async (body: SignInFinish, challenge: string, purpose: Purpose): Promise<{ userId: string; passkey: Passkey }> => {
    const handle = body.user_handle ?? undefined
    const userId = purpose.userId ?? userOf(handle) ?? refuse('it names no user')
    if (handle !== undefined && userOf(handle) !== userId) refuse('it is of another user', { user: userId })
    const passkey = (await passkeys.of(userId)).find(({ id }) => id === body.id)
    if (!passkey) return refuse('the user has no such passkey', { user: userId })
    const { label } = passkey
    const outcome = await verifySignIn(body, challenge, passkey, { rpId, origin })
    if ('fault' in outcome) return refuse(outcome.fault, { user: userId, label })
    let verdict: Passkey | undefined
    await passkeys.update(userId, passkey.id, (known) => {
      verdict = judge(known, outcome, host.clock.nowMs())
      return verdict
    })
    if (!verdict) return refuse('it was deleted meanwhile', { user: userId, label })
    if (verdict.disabledAtMs !== null)
      return refuse('it is disabled: its counter went back, so there may be a copy', { user: userId, label })
    return { userId, passkey: verdict }
  }

  return {
    async start(asker, userId) {
      const usable = userId === undefined ? [] : (await passkeys.of(userId)).filter(({ disabledAtMs }) => disabledAtMs === null)
      if (userId !== undefined && usable.length === 0)
        throw new AppError('invalid_request', `No registered credentials for user '${userId}'`)
      const [challenges, principal] = pendingOf(asker)
      const challenge = challenges.issue(principal, { userId: userId ?? null })
      const allowed = usable.map(descriptorOf)
      return {
        challenge,
        rp_id: rpId,
        allow_credentials: allowed.map(({ type, id }) => ({ type, id })),
        timeout: TIMEOUT_MS,
        user_verification: 'required',
        public_key: { challenge, rpId, allowCredentials: allowed, timeout: TIMEOUT_MS, userVerification: 'required' },
      }
    },
    async finish(body, asker) {
      const challenge = body.challenge ?? challengeIn(body.client_data_json)
      const [challenges, principal] = pendingOf(asker)
      const purpose = challenges.take(principal, challenge)
      if (!purpose) throw new AppError('invalid_request', 'No pending authentication for this challenge')
      const issueToken = host.service('issueToken')
      if (!issueToken) throw new AppError('unavailable', 'Nobody issues tokens here')
      const { userId, passkey } = await prove(body, challenge, purpose)
      const expiresAtMs = host.clock.nowMs() + TOKEN_MS
      const issued = await issueToken({ name: `passkey ${passkey.label}`, role: passkey.role, expiresAtMs, issuedBy: passkey.registeredBy })
      host.log.info('somebody signed in with a passkey', { user: userId, label: passkey.label, device: issued.deviceId })
      return { ...issued, userId, expiresAtMs }
    },
  }
}

/** What a proved counter makes of the passkey: used, or disabled for good where it did not go up. */
function judge(
  known: Passkey,
  { counter, isBackedUp }: { readonly counter: number; readonly isBackedUp: boolean },
  nowMs: number,
): Passkey {
  if (known.disabledAtMs !== null) return known
  const wentUp = counter > known.counter || (counter === 0 && known.counter === 0)
  return wentUp ? { ...known, counter, isBackedUp, lastUsedAtMs: nowMs } : { ...known, disabledAtMs: nowMs }
}

/** `undefined` for what is no user handle of ours. */
function userOf(handle: string | undefined): string | undefined {
  if (handle === undefined) return undefined
  const userId = Buffer.from(handle, 'base64url').toString('utf8')
  return Buffer.from(userId).toString('base64url') === handle ? userId : undefined
}
