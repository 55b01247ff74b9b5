/** The passkey endpoints of §4.6, for whoever has a bearer token. */
import { AppError, defineRoute, ROLES, type Route } from '@sluice/sdk'
import * as v from 'valibot'
import { registerFinishBody, registerStartBody, signInFinishBody, signInStartBody, userQuery } from './bodies.ts'
import type { OwnedPasskey, Passkey, Passkeys } from './passkeys.ts'
import type { Registrations } from './registration.ts'
import type { SignIns } from './sign-ins.ts'
import { signedIn, signedInSchema } from './signed-in.ts'

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

export const shownCredential = ({ userId, userName, passkey }: OwnedPasskey): v.InferOutput<typeof credentialSchema> => ({
  ...shownKey(passkey),
  user_id: userId,
  user_name: userName,
})

const shownKey = (passkey: Passkey) => ({
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

const options = v.looseObject({ challenge: text, public_key: v.looseObject({}) })

export interface Ceremonies {
  readonly passkeys: Passkeys
  readonly registrations: Registrations
  readonly signIns: SignIns
}

export const apiRoutes = ({ passkeys, registrations, signIns }: Ceremonies): Route[] => [
  defineRoute({
    method: 'POST',
    path: '/api/webauthn/register/start',
    summary: 'Begin to register a passkey for a user',
    auth: 'operator',
    body: registerStartBody,
    answers: { 200: { description: "What the authenticator needs; `public_key` is the same in the browsers' spelling", schema: options } },
    handle: ({ body, device }) => registrations.start(body, device),
  }),
  defineRoute({
    method: 'POST',
    path: '/api/webauthn/register/finish',
    summary: 'Register the passkey the authenticator made',
    auth: 'operator',
    body: registerFinishBody,
    answers: { 200: { description: 'Registered', schema: v.pick(credentialSchema, ['credential_id', 'label', 'registered_at']) } },
    async handle({ body, device }) {
      const { credential_id, label, registered_at } = shownKey(await registrations.finish(body, device))
      return { credential_id, label, registered_at }
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/webauthn/auth/start',
    summary: 'Begin to sign in with a passkey of a user',
    auth: 'client',
    body: signInStartBody,
    answers: { 200: { description: "What the authenticator needs; `public_key` is the same in the browsers' spelling", schema: options } },
    handle: ({ body, device }) => signIns.start({ device }, body.user_id),
  }),
  defineRoute({
    method: 'POST',
    path: '/api/webauthn/auth/finish',
    summary: 'Turn what the authenticator signed into a bearer token',
    auth: 'client',
    body: signInFinishBody,
    answers: { 200: { description: 'Signed in; the token is shown this once', schema: signedInSchema } },
    handle: async ({ body, device }) => signedIn(await signIns.finish(body, { device })),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/webauthn/credentials',
    summary: 'The passkeys, of one user or of all',
    auth: 'operator',
    query: userQuery,
    answers: { 200: { description: 'In the order they were registered in', schema: v.object({ credentials: v.array(credentialSchema) }) } },
    handle: async ({ query: { user_id } }) => ({
      credentials: (await passkeys.all()).filter(({ userId }) => user_id === undefined || userId === user_id).map(shownCredential),
    }),
  }),
  defineRoute({
    method: 'DELETE',
    path: '/api/webauthn/credentials/:id',
    summary: 'Delete a passkey; tokens it gave stay until they expire',
    auth: 'operator',
    query: userQuery,
    answers: { 200: { description: 'Deleted', schema: v.object({ status: v.literal('deleted') }) } },
    async handle({ params, query }) {
      if (!(await passkeys.remove(query.user_id, params.id ?? '')))
        throw new AppError('not_found', query.user_id === undefined ? 'There is no such passkey' : 'The user has no such passkey')
      return { status: 'deleted' }
    },
  }),
]
