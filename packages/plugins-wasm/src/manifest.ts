/** The file `manifest.json`, which describes a plugin. See `docs/plugins.md`. */
import { parseJson } from '@sluice/kit/foreign-json'
import { AppError, ROWS } from '@sluice/sdk'
import * as v from 'valibot'
import { printable } from './wasm/module-error.ts'

export const MANIFEST_FILE = 'manifest.json'
export const MANIFEST_BYTES_MAX = 16_384
export const NAME_CHARS_MAX = 64

/** Whether `name` is a valid name of a plugin, its tool and its folder. */
export const isPluginName = (name: string): boolean => name.length <= NAME_CHARS_MAX && /^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/.test(name)

/** Throws `conflict` when a tool of Sluice has this name, in this build or another. The runtime checks the tools of an embedder. */
export function checkToolName(name: string): void {
  const owner = ROWS.find(([, row]) => row.tools?.includes(name))?.[0]
  if (owner) throw new AppError('conflict', `'${name}' is the name of a tool of ${owner}; rename the plugin`)
}

/** Excludes control characters and invisible characters, which could change how a terminal shows the text. */
const ONE_LINE = /^[^\p{C}\u2028\u2029]{1,1000}$/u
const INPUT = 'input must be a description, or the JSON Schema of one text'

const text = (pattern: RegExp, message: string) => v.pipe(v.string(message), v.regex(pattern, message))

const DEFAULT_DESCRIPTION = 'The input of the plugin'
const line = text(ONE_LINE, INPUT)
const textInput = v.pipe(
  v.looseObject({ type: v.literal('string'), description: v.optional(line, DEFAULT_DESCRIPTION) }),
  v.transform(({ description }) => description),
)
/** A description of the input, the JSON Schema of a string, or that schema as the only property of an object. */
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
    name: v.pipe(v.string(), v.check(isPluginName, `name must be snake_case with at most ${NAME_CHARS_MAX} characters`)),
    version: text(/^[0-9A-Za-z][0-9A-Za-z.+-]{0,63}$/, 'version must consist of letters, digits, dots, + and -'),
    description: text(ONE_LINE, 'description must be one line of at most 1000 characters'),
    // Every plugin takes one text named `input`, which the manifest may describe.
    input: v.optional(inputSchema),
    wasm_path: v.optional(
      text(/^[0-9A-Za-z][0-9A-Za-z_.-]{0,99}\.wasm$/, 'wasm_path must be the name of a .wasm file in the folder of the manifest'),
      'plugin.wasm',
    ),
    permissions: v.optional(v.pipe(v.array(v.picklist(['network'], 'permissions may only contain "network"')), v.maxLength(1)), []),
    sha256: text(/^[0-9a-f]{64}$/, 'sha256 must be the digest of the module in lower-case hex'),
    publisher_key: v.optional(text(/^[0-9a-f]{64}$/, 'publisher_key must be an ed25519 public key in lower-case hex')),
    signature: v.optional(text(/^[0-9A-Za-z_-]{85}[AQgw]$/, 'signature must be 64 bytes in base64url')),
  },
  ({ received }) =>
    received === 'Object' || received.startsWith('"') ? `unknown or missing key ${printable(received)}` : 'it must be an object',
)

export type Manifest = v.InferOutput<typeof schema>

/** Throws `invalid_request` with the problem. */
export function parseManifest(bytes: Uint8Array): Manifest {
  if (bytes.length > MANIFEST_BYTES_MAX) throw invalid(`it is larger than ${MANIFEST_BYTES_MAX} bytes`)
  const result = v.safeParse(schema, parsed(bytes), { abortEarly: true })
  if (!result.success) throw invalid(result.issues[0].message)
  const manifest = result.output
  if ((manifest.signature === undefined) !== (manifest.publisher_key === undefined)) {
    throw invalid('signature and publisher_key must be set together')
  }
  return manifest
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return parseJson(bytes)
  } catch {
    throw invalid('it is not JSON')
  }
}

const invalid = (problem: string): AppError => new AppError('invalid_request', `${MANIFEST_FILE} is not valid: ${problem}`)

/** Returns the text that a publisher signs: the contents of the manifest, and with its digest the module. */
export const signedText = ({ name, version, description, wasm_path, permissions, sha256, publisher_key, input }: Manifest): string =>
  JSON.stringify([
    'sluice-plugin/1',
    ...[name, version, description, wasm_path, permissions, sha256, publisher_key],
    // Older manifests have no `input`, and their signatures must stay valid.
    ...(input === undefined ? [] : [input]),
  ])

/** Returns the description of the input for the model. */
export const inputDescription = ({ input }: Manifest): string => input ?? DEFAULT_DESCRIPTION
