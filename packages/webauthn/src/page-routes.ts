/** The sign-in page for people who have no token yet, and the two open endpoints behind it. No user is named to either. */
import { defineRoute, type Route } from '@sluice/sdk'
import * as v from 'valibot'
import { signInFinishBody } from './bodies.ts'
import type { WebauthnConfig } from './config.ts'
import { page } from './page.ts'
import type { SignIns } from './sign-ins.ts'
import { signedIn, signedInSchema } from './signed-in.ts'

/** Of each of the two, from one address. */
const CALLS_PER_MINUTE = 30

export const pageRoutes = (config: WebauthnConfig, signIns: SignIns): Route[] => [
  defineRoute({
    method: 'GET',
    path: '/passkey',
    summary: 'The page to sign in with a passkey, or to register one',
    auth: 'open',
    mediaType: 'text/html',
    answers: { 200: { description: 'The page' } },
    handle: () => page(config),
  }),
  defineRoute({
    method: 'POST',
    path: '/passkey/start',
    summary: 'Begin to sign in with any passkey of this gateway',
    auth: 'open',
    callsPerMinute: CALLS_PER_MINUTE,
    answers: {
      200: { description: 'What the authenticator needs', schema: v.looseObject({ challenge: v.string(), public_key: v.looseObject({}) }) },
    },
    handle: () => signIns.start('anybody'),
  }),
  defineRoute({
    method: 'POST',
    path: '/passkey/finish',
    summary: 'Turn what the authenticator signed into a bearer token',
    auth: 'open',
    callsPerMinute: CALLS_PER_MINUTE,
    body: signInFinishBody,
    answers: { 200: { description: 'Signed in; the token is shown this once', schema: signedInSchema } },
    handle: async ({ body }) => signedIn(await signIns.finish(body, 'anybody')),
  }),
]
