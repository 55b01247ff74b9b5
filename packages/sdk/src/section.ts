/** Configuration sections: the schema is the only place where keys, defaults, secrets and environment names stand. */
import * as v from 'valibot'
import { Secret } from './secret.ts'

export type ConfigSchema = v.GenericSchema<Record<string, unknown> | undefined, object>

/** One TOML section. Several features may own keys of one path, as long as no key has two different schemas. */
export interface Section<Schema extends ConfigSchema = ConfigSchema> {
  /** As in the file: `channels_config.roomchat`. */
  readonly path: string
  /** A `v.object` of the section's keys in their TOML spelling. */
  readonly schema: Schema
  /**
   * Runs after the schema, for a section that is configured and turned on: checks that need code which is loaded only then,
   * and values in the form the feature works with.
   */
  refine?(value: v.InferOutput<Schema>): Promise<Refined<v.InferOutput<Schema>>>
}

export interface Refined<Value> {
  readonly value: Value
  readonly problems: readonly {
    /** From the section on. */
    readonly path: readonly (string | number)[]
    /** Says why the value is wrong and which values are accepted. */
    readonly message: string
  }[]
}

/** What the loader, the logger and the documentation read from a key. */
export interface KeyMetadata {
  /** Encrypted at rest, redacted everywhere. */
  readonly secret?: true
  /** Names of environment variables that give the value, the first one set wins. */
  readonly env?: readonly string[]
  /** True: the variable overrides the file. Otherwise it only fills a gap. */
  readonly envWins?: true
}

/** Attaches environment names to a key: the first one that is set overrides the file. */
export const fromEnv = <Input>(...env: string[]): v.MetadataAction<Input, { readonly env: readonly string[]; readonly envWins: true }> =>
  v.metadata({ env, envWins: true })

/** A secret key: a non-empty text that reaches the feature as a `Secret`. */
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

/** What an HTTP header may carry, without the blanks around it that are trimmed before use. */
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

/** A whole number between two bounds, both allowed. */
export const whole = (min: number, max: number = Number.MAX_SAFE_INTEGER) =>
  v.pipe(v.number(), v.integer(), v.minValue(min), v.maxValue(max))
