/** The routes by which a browser signs in, keeps its session and signs out. The session is a cookie that no script can read. */
import { AppError, defineRoute, type Host, ROLES, type Role, type Route, type RouteRequest } from '@sluice/sdk'
import * as v from 'valibot'
import { browserName } from './browser-name.ts'
import type { SignInLinks } from './sign-in-links.ts'

/** The limit of each open route for one address. */
const CALLS_PER_MINUTE = 30
const CODE_CHARS_MAX = 128

const sessionSchema = v.object({
  device: v.pipe(v.nullable(v.string()), v.description('The device of this browser; null while no pairing is required')),
  role: v.picklist(ROLES),
})
const signedInSchema = v.object({ ...sessionSchema.entries, expires_at: v.string() })
const optionsSchema = v.looseObject({ challenge: v.string(), public_key: v.looseObject({}) })

export const sessionRoutes = (host: Host, links: SignInLinks): Route[] => [
  waysRoute(host),
  linkRoute(links),
  passkeyStartRoute(host),
  passkeyFinishRoute(host),
  ...ownSessionRoutes(),
]

/** Answers with JSON and the cookie. */
const withCookie = (value: object, setCookie: string): Response =>
  new Response(JSON.stringify(value), { headers: { 'content-type': 'application/json', 'set-cookie': setCookie } })

async function signIn(
  { browserSession, headers }: RouteRequest,
  { role, issuedBy = null, by }: { readonly role: Role; readonly issuedBy?: string | null; readonly by?: string },
): Promise<Response> {
  const name = ['dashboard', browserName(headers.get('user-agent')), ...(by === undefined ? [] : [`passkey ${by}`])].join(', ')
  const { device, expiresAtMs, setCookie } = await browserSession.begin({ name, role, issuedBy })
  return withCookie({ device, role, expires_at: new Date(expiresAtMs).toISOString() }, setCookie)
}

const waysRoute = (host: Host): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/dashboard/sign-in',
    summary: 'The ways in which a browser can sign in',
    auth: 'open',
    answers: {
      200: {
        description: 'The ways',
        schema: v.object({ passkey: v.pipe(v.boolean(), v.description('True: by passkey; a link of `sluice dashboard` always works')) }),
      },
    },
    handle: () => ({ passkey: host.service('passkeys') !== undefined }),
  })

const linkRoute = (links: SignInLinks): Route =>
  defineRoute({
    method: 'POST',
    path: '/api/dashboard/sign-in',
    summary: 'Sign a browser in with the code of a link that `sluice dashboard` printed',
    auth: 'open',
    callsPerMinute: CALLS_PER_MINUTE,
    body: v.object({ code: v.pipe(v.string(), v.maxLength(CODE_CHARS_MAX)) }),
    answers: { 200: { description: 'Signed in; the session is in a cookie', schema: signedInSchema } },
    async handle(request) {
      request.browserSession.check()
      const role = await links.redeem(request.body.code)
      if (role === undefined) throw new AppError('forbidden', 'This link was used or has expired; `sluice dashboard` prints a new one')
      return signIn(request, { role })
    },
  })

function passkeysOf(host: Host) {
  const passkeys = host.service('passkeys')
  if (!passkeys) throw new AppError('unavailable', 'Nobody can sign in with a passkey here: `sluice dashboard` prints a link')
  return passkeys
}

const passkeyStartRoute = (host: Host): Route =>
  defineRoute({
    method: 'POST',
    path: '/api/dashboard/passkey/start',
    summary: 'Begin to sign a browser in with any passkey of this gateway',
    auth: 'open',
    callsPerMinute: CALLS_PER_MINUTE,
    answers: { 200: { description: 'The options for the authenticator', schema: optionsSchema } },
    handle: () => passkeysOf(host).start(),
  })

const passkeyFinishRoute = (host: Host): Route =>
  defineRoute({
    method: 'POST',
    path: '/api/dashboard/passkey/finish',
    summary: 'Sign a browser in with the signature of the authenticator',
    auth: 'open',
    callsPerMinute: CALLS_PER_MINUTE,
    body: v.looseObject({}),
    answers: { 200: { description: 'Signed in; the session is in a cookie', schema: signedInSchema } },
    async handle(request) {
      request.browserSession.check()
      const { label, role, issuedBy } = await passkeysOf(host).finish(request.body)
      return signIn(request, { role, issuedBy, by: label })
    },
  })

const ownSessionRoutes = (): Route[] => [
  defineRoute({
    method: 'GET',
    path: '/api/dashboard/session',
    summary: 'The device and the role of this browser',
    auth: 'client',
    answers: { 200: { description: 'The session', schema: sessionSchema } },
    handle: ({ device, role }) => ({ device, role }),
  }),
  defineRoute({
    method: 'POST',
    path: '/api/dashboard/session',
    summary: 'Keep the session of this browser for another 30 days',
    auth: 'client',
    answers: { 200: { description: 'The session', schema: sessionSchema } },
    async handle({ device, role, browserSession }) {
      const renewed = device === null ? undefined : await browserSession.renew()
      return renewed ? withCookie({ device, role }, renewed.setCookie) : { device, role }
    },
  }),
  defineRoute({
    method: 'DELETE',
    path: '/api/dashboard/session',
    summary: 'Sign this browser out: its session and its open streams end',
    auth: 'client',
    answers: { 200: { description: 'Signed out', schema: v.object({ signed_out: v.literal(true) }) } },
    handle: async ({ browserSession }) => withCookie({ signed_out: true }, (await browserSession.end()).setCookie),
  }),
]
