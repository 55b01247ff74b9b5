/** The sign-in page for users without a token, and the two open endpoints behind it. Neither endpoint takes a user's name. */
import { defineRoute, type Route } from '@sluice/sdk'
import { optionsSchema, signedInAnswer, signedInSchema, signInFinishBody } from './bodies.ts'
import type { WebauthnConfig } from './config.ts'
import { page } from './page.ts'
import type { SignIns } from './sign-ins.ts'

/** The limit of each of the two endpoints for one address. */
const CALLS_PER_MINUTE = 30

export const pageRoutes = (config: WebauthnConfig, signIns: SignIns): Route[] => [
  defineRoute({
    method: 'GET',
    path: '/passkey',
    summary: 'Show the page to sign in with a passkey or to register one',
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
    answers: { 200: { description: 'The options for the authenticator', schema: optionsSchema } },
    handle: () => signIns.start('anonymous'),
  }),
  defineRoute({
    method: 'POST',
    path: '/passkey/finish',
    summary: 'Exchange the signature of the authenticator for a bearer token',
    auth: 'open',
    callsPerMinute: CALLS_PER_MINUTE,
    body: signInFinishBody,
    answers: { 200: { description: 'Signed in; the token is shown only here', schema: signedInSchema } },
    handle: async ({ body }) => signedInAnswer(await signIns.finish(body, 'anonymous')),
  }),
]
