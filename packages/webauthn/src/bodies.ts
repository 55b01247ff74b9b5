/** The bodies of the passkey endpoints (§4.6): snake_case, or what browsers make of a credential by `toJSON()`. */
import { ROLES } from '@sluice/sdk'
import * as v from 'valibot'

/** User handles have at most 64 bytes, and the user id is the handle. */
const USER_ID_BYTES_MAX = 64
const NAME_CHARS_MAX = 64
const CREDENTIAL_ID_CHARS_MAX = 1364
const TRANSPORTS_MAX = 8

/** Base64url without padding, of a length that can be one. */
const base64url = (charsMax: number) =>
  v.pipe(
    v.string(),
    v.maxLength(charsMax),
    v.regex(/^[A-Za-z0-9_-]+$/, 'It is not base64url without padding'),
    v.check((text) => text.length % 4 !== 1, 'It is not base64url without padding'),
  )

const name = v.pipe(v.string(), v.trim(), v.minLength(1), v.maxLength(NAME_CHARS_MAX), v.regex(/^\P{C}+$/u))

const userId = v.pipe(
  v.string(),
  v.minLength(1),
  v.maxBytes(USER_ID_BYTES_MAX),
  v.regex(/^\P{C}+$/u),
  v.description('Any text the operator knows the user by'),
)

const role = v.optional(v.pipe(v.picklist(ROLES), v.description('What a sign-in with this passkey may do')), 'operator')

export const registerStartBody = v.object({ user_id: userId, user_name: name, role })
export const signInStartBody = v.object({ user_id: userId })
export const userQuery = v.object({ user_id: v.exactOptional(userId) })

const credential = {
  challenge: v.optional(v.pipe(base64url(128), v.description('As it was given; without it, the one in the client data'))),
  id: v.pipe(base64url(CREDENTIAL_ID_CHARS_MAX), v.description('The credential id')),
  raw_id: v.optional(v.string()),
  type: v.optional(v.literal('public-key')),
  client_data_json: base64url(8192),
}

const TWO_IDS = 'id and raw_id differ'

/** The schema's members in either spelling, those of `response` beside the others. */
const inEitherSpelling = <const Schema extends v.GenericSchema & { readonly entries: v.ObjectEntries }>(schema: Schema) =>
  v.pipe(
    // What is demanded of them is looked at below; here they are named for the documentation.
    v.looseObject(Object.fromEntries(Object.keys(schema.entries).map((name) => [name, v.optional(v.unknown())]))),
    v.description('In snake_case, all members beside each other; or what `PublicKeyCredential.toJSON()` returns'),
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
      label: v.optional(v.pipe(name, v.description('What people know this passkey by')), 'Hardware Key'),
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
