/** The request and answer bodies of the passkey endpoints. A request may also be the result of `PublicKeyCredential.toJSON()`. */

import type { IssuedToken } from '@sluice/sdk'
import { ROLES } from '@sluice/sdk'
import * as v from 'valibot'

/** The W3C limit for a user handle, which holds the user id. */
const USER_ID_BYTES_MAX = 64
const NAME_CHARS_MAX = 64
const CREDENTIAL_ID_CHARS_MAX = 1364
const TRANSPORTS_MAX = 8

/** Accepts base64url without padding, of a length that is possible. */
const base64url = (charsMax: number) =>
  v.pipe(
    v.string(),
    v.maxLength(charsMax),
    v.regex(/^[A-Za-z0-9_-]+$/, 'It must be base64url without padding'),
    v.check((text) => text.length % 4 !== 1, 'It must be base64url without padding'),
  )

const name = v.pipe(v.string(), v.trim(), v.minLength(1), v.maxLength(NAME_CHARS_MAX), v.regex(/^\P{C}+$/u))

const userId = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxBytes(USER_ID_BYTES_MAX),
  v.regex(/^\P{C}+$/u),
  v.description('Any text by which the operator identifies the user'),
)

const role = v.optional(v.pipe(v.picklist(ROLES), v.description('The role of a sign-in with this passkey')), 'operator')

export const registerStartBody = v.object({ user_id: userId, user_name: name, role })
export const signInStartBody = v.object({ user_id: userId })
export const userQuery = v.object({ user_id: v.exactOptional(userId) })

const credential = {
  challenge: v.optional(
    v.pipe(base64url(128), v.description('The challenge of the options; if it is missing, the one in the client data is used')),
  ),
  id: v.pipe(base64url(CREDENTIAL_ID_CHARS_MAX), v.description('The credential id')),
  raw_id: v.optional(v.string()),
  type: v.optional(v.literal('public-key')),
  client_data_json: base64url(8192),
}

const TWO_IDS = 'id and raw_id differ'

/** Accepts the members of the schema in snake_case, or in the spelling of browsers with some of them in `response`. */
const inEitherSpelling = <const Schema extends v.GenericSchema & { readonly entries: v.ObjectEntries }>(schema: Schema) =>
  v.pipe(
    // Names the members for the API documentation; `schema` checks them below.
    v.looseObject(Object.fromEntries(Object.keys(schema.entries).map((name) => [name, v.optional(v.unknown())]))),
    v.description('All members in snake_case on one level, or the result of `PublicKeyCredential.toJSON()`'),
    v.transform(({ response, ...own }: Readonly<Record<string, unknown>>) => {
      const inner = typeof response === 'object' ? response : {}
      const members = Object.entries({ ...own, ...inner }).map(([key, value]) => [SNAKE[key] ?? key, value])
      return Object.fromEntries(members) as v.InferInput<Schema>
    }),
    schema,
  )

const SNAKE: Readonly<Record<string, string>> = {
  rawId: 'raw_id',
  clientDataJSON: 'client_data_json',
  attestationObject: 'attestation_object',
  authenticatorData: 'authenticator_data',
  userHandle: 'user_handle',
}

export const registerFinishBody = inEitherSpelling(
  v.pipe(
    v.object({
      ...credential,
      attestation_object: base64url(16_384),
      label: v.optional(v.pipe(name, v.description('The name of this passkey in lists')), 'Hardware Key'),
      transports: v.optional(v.pipe(v.array(v.pipe(v.string(), v.regex(/^[a-z-]{1,32}$/))), v.maxLength(TRANSPORTS_MAX)), []),
    }),
    v.check(({ id, raw_id = id }) => raw_id === id, TWO_IDS),
  ),
)

export const signInFinishBody = inEitherSpelling(
  v.pipe(
    v.object({
      ...credential,
      authenticator_data: base64url(4096),
      signature: base64url(2048),
      user_handle: v.nullish(base64url(88)),
    }),
    v.check(({ id, raw_id = id }) => raw_id === id, TWO_IDS),
  ),
)

export type RegisterFinish = v.InferOutput<typeof registerFinishBody>
export type SignInFinish = v.InferOutput<typeof signInFinishBody>

/** The answer to a `start` request. */
export const optionsSchema = v.looseObject({ challenge: v.string(), public_key: v.looseObject({}) })

export const signedInSchema = v.object({
  status: v.literal('authenticated'),
  token: v.string(),
  expires_at: v.string(),
  device_id: v.string(),
  user_id: v.string(),
})

export interface SignedIn extends IssuedToken {
  readonly userId: string
  readonly expiresAtMs: number
}

export const signedInAnswer = ({ token, expiresAtMs, deviceId, userId }: SignedIn): v.InferOutput<typeof signedInSchema> => ({
  status: 'authenticated',
  token,
  expires_at: new Date(expiresAtMs).toISOString(),
  device_id: deviceId,
  user_id: userId,
})
