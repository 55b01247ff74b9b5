/** The passkey endpoints for callers with a bearer token (docs/passkeys.md). */
import { AppError, defineRoute, type Host, ROLES, type Route } from '@sluice/sdk'
import * as v from 'valibot'
import {
  optionsSchema,
  registerFinishBody,
  registerStartBody,
  signedInAnswer,
  signedInSchema,
  signInFinishBody,
  signInStartBody,
  userQuery,
} from './bodies.ts'
import type { OwnedPasskey, Passkey, PasskeyStore } from './passkeys.ts'
import type { Registrations } from './registrations.ts'
import type { SignIns } from './sign-ins.ts'

const text = v.string()
const credentialSchema = v.object({
  credential_id: text,
  user_id: text,
  user_name: text,
  label: text,
  registered_at: text,
  registered_by: v.nullable(text),
  role: v.picklist(ROLES),
  sign_count: v.number(),
  last_used_at: v.nullable(text),
  backed_up: v.boolean(),
  disabled: v.boolean(),
})

/** Describes a passkey and its owner in answers and command output, without the key. */
export const credentialView = ({ userId, userName, passkey }: OwnedPasskey): v.InferOutput<typeof credentialSchema> => ({
  ...passkeyView(passkey),
  user_id: userId,
  user_name: userName,
})

const passkeyView = (passkey: Passkey) => ({
  credential_id: passkey.id,
  label: passkey.label,
  registered_at: new Date(passkey.registeredAtMs).toISOString(),
  registered_by: passkey.registeredBy,
  role: passkey.role,
  sign_count: passkey.counter,
  last_used_at: passkey.lastUsedAtMs === null ? null : new Date(passkey.lastUsedAtMs).toISOString(),
  backed_up: passkey.isBackedUp,
  disabled: passkey.disabledAtMs !== null,
})

export const apiRoutes = (host: Host, passkeys: PasskeyStore, registrations: Registrations, signIns: SignIns): Route[] => [
  ...registrationRoutes(host, registrations),
  ...signInRoutes(signIns),
  ...credentialRoutes(host, passkeys),
]

const registrationRoutes = (host: Host, registrations: Registrations): Route[] => [
  defineRoute({
    method: 'POST',
    path: '/api/webauthn/register/start',
    summary: 'Begin to register a passkey for a user',
    auth: 'operator',
    body: registerStartBody,
    answers: {
      200: {
        description: 'The options for the authenticator; `public_key` repeats them in the spelling of browsers',
        schema: optionsSchema,
      },
    },
    handle: ({ body, device }) => registrations.start(body, device),
  }),
  defineRoute({
    method: 'POST',
    path: '/api/webauthn/register/finish',
    summary: 'Register the passkey that the authenticator created',
    auth: 'operator',
    body: registerFinishBody,
    answers: { 200: { description: 'Registered', schema: v.pick(credentialSchema, ['credential_id', 'label', 'registered_at']) } },
    async handle({ by, body, device }) {
      const { credential_id, label, registered_at } = passkeyView(await registrations.finish(body, device))
      await host.service('audit')?.({ kind: 'passkey_registered', by, detail: { passkey: credential_id } })
      return { credential_id, label, registered_at }
    },
  }),
]

const signInRoutes = (signIns: SignIns): Route[] => [
  defineRoute({
    method: 'POST',
    path: '/api/webauthn/auth/start',
    summary: 'Begin to sign in with a passkey of a user',
    auth: 'client',
    body: signInStartBody,
    answers: {
      200: {
        description: 'The options for the authenticator; `public_key` repeats them in the spelling of browsers',
        schema: optionsSchema,
      },
    },
    handle: ({ body, device }) => signIns.start({ device }, body.user_id),
  }),
  defineRoute({
    method: 'POST',
    path: '/api/webauthn/auth/finish',
    summary: 'Exchange the signature of the authenticator for a bearer token',
    auth: 'client',
    body: signInFinishBody,
    answers: { 200: { description: 'Signed in; the token is shown only here', schema: signedInSchema } },
    handle: async ({ body, device }) => signedInAnswer(await signIns.finish(body, { device })),
  }),
]

const credentialRoutes = (host: Host, passkeys: PasskeyStore): Route[] => [
  defineRoute({
    method: 'GET',
    path: '/api/webauthn/credentials',
    summary: 'List the passkeys of one user or of all users',
    auth: 'operator',
    query: userQuery,
    answers: {
      200: { description: 'The passkeys in the order of their registration', schema: v.object({ credentials: v.array(credentialSchema) }) },
    },
    handle: async ({ query: { user_id } }) => ({
      credentials: (await passkeys.all()).filter(({ userId }) => user_id === undefined || userId === user_id).map(credentialView),
    }),
  }),
  defineRoute({
    method: 'DELETE',
    path: '/api/webauthn/credentials/:id',
    summary: 'Delete a passkey; tokens from its sign-ins stay valid until they expire',
    auth: 'operator',
    query: userQuery,
    answers: { 200: { description: 'Deleted', schema: v.object({ status: v.literal('deleted') }) } },
    async handle({ by, params, query }) {
      if (!(await passkeys.remove(query.user_id, params.id ?? '')))
        throw new AppError('not_found', query.user_id === undefined ? 'There is no such passkey' : 'The user has no such passkey')
      await host.service('audit')?.({ kind: 'passkey_removed', by, detail: { passkey: params.id ?? '' } })
      return { status: 'deleted' }
    },
  }),
]
