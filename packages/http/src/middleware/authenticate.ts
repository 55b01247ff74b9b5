/** Admits callers: by bearer token and role, by being on this machine, or freely, as each route declares. */
import type { GatewayConfig } from '@sluice/config'
import { isLoopback } from '@sluice/kit'
import { AppError, type RouteAuth } from '@sluice/sdk'
import { type Auth, CONTROL_SOCKET, type Principal } from '../auth/auth.ts'
import { checkPage, plantedCookies, sessionCookies } from '../auth/browser-cookie.ts'
import { personOf } from '../auth/identity.ts'
import { type Caller, type HttpContext, headersOf, type Step, socketAddress } from '../request/context.ts'
import type { AppParts } from '../server/app-parts.ts'
import { type HeaderReader, isForwarded } from './client-address.ts'
import { checkNames } from './origin.ts'

/** Reads the credential of a request: its headers, unless the token comes another way, as with the WebSockets of browsers. */
export type CredentialReader = (c: HttpContext) => HeaderReader

/**
 * Sets `caller`; needs `peer`. `opensStream` marks a route that answers a GET by a stream, which a browser must ask for as a page of
 * this daemon. Refuses with `forbidden` (also a role that does not suffice), `unauthorized`, or `rate_limited`
 * while the address is locked out.
 */
export const authenticate =
  (required: RouteAuth, parts: AppParts, credentialOf: CredentialReader = headersOf, opensStream = false): Step =>
  async (c, next) => {
    if (required === 'local') checkIsLocal(c, parts.snapshot.gateway)
    const needsCredential = required === 'operator' || required === 'client'
    const caller = needsCredential ? await identify(c, parts, credentialOf(c), opensStream) : anonymous(c, parts)
    if (required === 'operator') checkIsOperator(caller)
    c.set('caller', caller)
    await next()
  }

/** Throws `unauthorized` if the token of an admitted caller was revoked since, for example while its body was read. */
export async function checkStillGood({ role, tokenHash }: Caller, auth: Auth): Promise<void> {
  if (role !== null && !(await auth.isGood(tokenHash))) throw new AppError('unauthorized', 'Unauthorized: the token was revoked')
}

async function identify(c: HttpContext, parts: AppParts, credential: HeaderReader, opensStream: boolean): Promise<Caller> {
  const { snapshot, auth, clients } = parts
  const { gateway } = snapshot
  const { connection, address, spared, operator } = c.get('peer')
  if (operator !== undefined)
    return {
      device: null,
      person: 'cli',
      by: operator,
      tokenHash: CONTROL_SOCKET,
      role: 'operator',
      client: clients.of(connection, null),
    }
  if (!gateway.require_pairing) checkNames(headersOf(c), gateway)
  const { device, tokenHash, role } =
    (await signedIn(c, parts, credential, opensStream)) ?? (await auth.bearer(credential, address, spared))
  const person = personOf(device)
  return { device, person, by: person, tokenHash, role, client: clients.of(connection, device) }
}

/**
 * The caller that a cookie names; undefined for a request with another credential. A session that has ended is refused and counts as no
 * guess: a page that is left open would lock its address out.
 */
async function signedIn(c: HttpContext, parts: AppParts, credential: HeaderReader, opensStream: boolean): Promise<Principal | undefined> {
  if (!parts.snapshot.gateway.require_pairing || credential.get('authorization') !== null) return undefined
  const { tokens, count } = sessionCookies(c, parts)
  if (count === 0) return undefined
  checkPage(c, parts.snapshot.gateway, opensStream)
  const [session, other] = await parts.auth.sessions(tokens, c.get('peer').address)
  if (session && !other) return session
  if (count === 1) throw new AppError('unauthorized', 'Unauthorized: this session has ended; sign in again')
  c.set('deletedCookies', plantedCookies(c, parts, parts.snapshot.gateway))
  const found = session ? 'has cookies of two sessions' : `has ${count} session cookies, and none of the first is valid`
  throw new AppError('unauthorized', `Unauthorized: this browser ${found}. ${REMOVED}`, { fields: { cookies: count } })
}

/** The advice to a person whose browser has cookies that another server of the host has planted. */
const REMOVED =
  'Those that another server on this host name may have set are now deleted: try again, and sign in again if that does not help. If it still does not, delete the cookies of this site in the settings of the browser'

const anonymous = (c: HttpContext, { clients }: AppParts): Caller => ({
  device: null,
  person: personOf(null),
  by: personOf(null),
  tokenHash: null,
  role: null,
  client: clients.of(c.get('peer').connection, null),
})

function checkIsLocal(c: HttpContext, config: GatewayConfig): void {
  const headers = headersOf(c)
  if (c.env?.operator !== undefined) return
  if (!isLoopback(socketAddress(c)) || isForwarded(headers)) {
    throw new AppError('forbidden', 'Only processes on this machine may call this')
  }
  checkNames(headers, config)
}

function checkIsOperator({ role }: Caller): void {
  if (role !== 'operator') throw needsOperator()
}

export const needsOperator = (): AppError =>
  new AppError('forbidden', 'This needs a token of the role operator; this one is of the role client')
