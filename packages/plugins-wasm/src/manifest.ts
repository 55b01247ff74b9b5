/** `manifest.json`: what a plugin says of itself (§2.7). */

import { parseJson } from '@sluice/kit/foreign-json'
import { AppError } from '@sluice/sdk'
import * as v from 'valibot'
import { shown } from './wasm/shown.ts'

export const MANIFEST_FILE = 'manifest.json'
export const MANIFEST_BYTES_MAX = 16_384
export const NAME_CHARS_MAX = 64

/** The name of the plugin is the name of its tool and of its folder. */
export const isPluginName = (name: string): boolean => name.length <= NAME_CHARS_MAX && /^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/.test(name)

const ONE_LINE = /^[^\p{C}\u2028\u2029]{1,1000}$/u
const INPUT = 'input: a description, or the JSON Schema of one text'

const text = (pattern: RegExp, what: string) => v.pipe(v.string(what), v.regex(pattern, what))

/** What stands in for `input`: its description alone, or the JSON Schema of a text, alone or as the one property of an object. */
const DEFAULT_DESCRIPTION = 'What the plugin is given'
const line = text(ONE_LINE, INPUT)
const textInput = v.pipe(
  v.looseObject({ type: v.literal('string'), description: v.optional(line, DEFAULT_DESCRIPTION) }),
  v.transform(({ description }) => description),
)
const inputSchema = v.union(
  [
    line,
    textInput,
    v.pipe(
      v.looseObject({ type: v.optional(v.literal('object')), properties: v.strictObject({ input: textInput }) }),
      v.transform(({ properties }) => properties.input),
    ),
  ],
  INPUT,
)

const schema = v.strictObject(
  {
    name: v.pipe(v.string(), v.check(isPluginName, `name: up to ${NAME_CHARS_MAX} characters in snake_case, as the model will see it`)),
    version: text(/^[0-9A-Za-z][0-9A-Za-z.+-]{0,63}$/, 'version: letters, digits, dots, + and -'),
    // no control characters, and nothing that turns or hides what is shown of it
    description: text(ONE_LINE, 'description: one line of at most 1000 characters'),
    // Every plugin takes one text of this name; a manifest may describe it.
    input: v.optional(inputSchema),
    wasm_path: v.optional(
      text(/^[0-9A-Za-z][0-9A-Za-z_.-]{0,99}\.wasm$/, 'wasm_path: the name of a file beside the manifest'),
      'plugin.wasm',
    ),
    permissions: v.optional(v.pipe(v.array(v.picklist(['network'], 'permissions: only "network"')), v.maxLength(1)), []),
    sha256: text(/^[0-9a-f]{64}$/, 'sha256: the digest of the module in lower-case hex'),
    publisher_key: v.optional(text(/^[0-9a-f]{64}$/, 'publisher_key: an ed25519 public key in lower-case hex')),
    signature: v.optional(text(/^[0-9A-Za-z_-]{85}[AQgw]$/, 'signature: 64 bytes in base64url')),
  },
  ({ received }) => (received === 'Object' || received.startsWith('"') ? `an unknown or missing key ${shown(received)}` : 'an object'),
)

export type Manifest = v.InferOutput<typeof schema>

/** Throws `invalid_request`. */
export function parseManifest(bytes: Uint8Array): Manifest {
  if (bytes.length > MANIFEST_BYTES_MAX) throw invalid(`it is larger than ${MANIFEST_BYTES_MAX} bytes`)
  const result = v.safeParse(schema, parsed(bytes), { abortEarly: true })
  if (!result.success) throw invalid(result.issues[0].message)
  const manifest = result.output
  if ((manifest.signature === undefined) !== (manifest.publisher_key === undefined)) {
    throw invalid('signature and publisher_key go together')
  }
  return manifest
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return parseJson(bytes)
  } catch {
    throw invalid('it is no JSON')
  }
}

const invalid = (why: string): AppError => new AppError('invalid_request', `${MANIFEST_FILE} is not valid: ${why}`)

/** What a publisher signs: everything the manifest says, and by its digest the module. */
export const signedText = ({ name, version, description, wasm_path, permissions, sha256, publisher_key, input }: Manifest): string =>
  JSON.stringify([
    'sluice-plugin/1',
    ...[name, version, description, wasm_path, permissions, sha256, publisher_key],
    // A manifest without it is signed as before it could have one.
    ...(input === undefined ? [] : [input]),
  ])

/** What the model is told of the text that the plugin takes. */
export const inputDescription = ({ input }: Manifest): string => input ?? DEFAULT_DESCRIPTION
