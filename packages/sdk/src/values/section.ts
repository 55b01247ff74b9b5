/** Sections of the configuration. The schema is the only place that defines keys, defaults, secrets and environment variables. */
import { isAbsolute } from 'node:path'
import * as v from 'valibot'
import { Secret } from './secret.ts'

export type ConfigSchema = v.GenericSchema<Record<string, unknown> | undefined, object>

/** One TOML section. Several features may own keys of one path, but no key may have two different schemas. */
export interface Section<Schema extends ConfigSchema = ConfigSchema> {
  /** The path as in the file, such as `channels_config.roomchat`. */
  readonly path: string
  /** A `v.object` of the section's keys in their TOML spelling. */
  readonly schema: Schema
  /**
   * Runs after the schema when the section is configured and turned on. Performs checks whose code is loaded only then, and
   * converts values to the form that the feature uses.
   */
  refine?(value: v.InferOutput<Schema>): Promise<Refined<v.InferOutput<Schema>>>
}

export interface Refined<Value> {
  readonly value: Value
  readonly problems: readonly {
    /** The path below the section. */
    readonly path: readonly (string | number)[]
    /** Why the value is wrong, and which values are accepted. */
    readonly message: string
  }[]
}

/** Properties of a key that the loader, the logger and the documentation read. */
export interface KeyMetadata {
  /** The value is encrypted at rest and masked everywhere. */
  readonly secret?: true
  /** The key of the same section for the SHA-256 of the secret, in hex. It is written in place of the secret. */
  readonly digestKey?: string
  /** The environment variables that supply the value; the first one that is set wins. */
  readonly env?: readonly string[]
  /** True when the variable overrides the file. Otherwise it supplies a value that the file does not have. */
  readonly envWins?: true
}

/** Attaches environment variables to a key; the first one that is set overrides the file. */
export const fromEnv = <Input>(...env: string[]): v.MetadataAction<Input, { readonly env: readonly string[]; readonly envWins: true }> =>
  v.metadata({ env, envWins: true })

/** A secret: a non-empty text that the feature receives as a `Secret`. */
export const secretText = (metadata: Omit<KeyMetadata, 'secret'> = {}) =>
  v.pipe(
    v.string(),
    v.minLength(1),
    v.transform((value) => new Secret(value)),
    v.metadata({ secret: true, ...metadata } satisfies KeyMetadata),
  )

const HTTP_URL = 'must be an http or https URL such as https://host.example/v1, without user name, query or fragment'

/** The address of a service: an http or https URL without user name, query or fragment. */
export const httpUrl = () => v.pipe(v.string(), v.url(), v.regex(/^https?:\/\/[^@?#\s]+$/i, HTTP_URL))

/** The characters that an HTTP header value may have. Surrounding blanks are trimmed before use. */
const HEADER_VALUE = /^[\t\x20-\x7E]*$/

/** A secret that is sent in a request header. */
export const headerSecret = (metadata: Omit<KeyMetadata, 'secret'> = {}) =>
  v.pipe(
    v.string(),
    v.minLength(1),
    v.check(
      (value) => HEADER_VALUE.test(value.trim()),
      'must contain printable ASCII characters only, because it is sent in an HTTP header',
    ),
    v.transform((value) => new Secret(value)),
    v.metadata({ secret: true, ...metadata } satisfies KeyMetadata),
  )

/** A whole number from `min` to `max`, both included. */
export const whole = (min: number, max: number = Number.MAX_SAFE_INTEGER) =>
  v.pipe(v.number(), v.integer(), v.minValue(min), v.maxValue(max))

/**
 * A program of the operator with its arguments, which does not run in a shell. The arguments must contain each placeholder, such as
 * `{file}`, whose meaning the value describes.
 */
export const operatorCommand = (placeholders: Readonly<Record<string, string>>) =>
  v.pipe(
    v.array(v.pipe(v.string(), v.minLength(1))),
    v.minLength(1),
    v.check(([program = '']) => !program.includes('/') || isAbsolute(program), 'The program must be a name or an absolute path'),
    v.check(
      ([, ...args]) => Object.keys(placeholders).every((name) => args.some((arg) => arg.includes(name))),
      `The arguments must contain ${meanings(placeholders, ', ')}`,
    ),
    v.description(`Program with its arguments that runs in the sandbox instead of the service; ${meanings(placeholders, ' is ')}`),
  )

const meanings = (placeholders: Readonly<Record<string, string>>, between: string): string =>
  Object.entries(placeholders)
    .map(([name, meaning]) => `${name}${between}${meaning}`)
    .join(', and ')
