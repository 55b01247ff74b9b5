/** The manifest of a backup, at the end of the archive, with the hash of every file before it. */
import { AppError } from '@sluice/sdk'
import * as v from 'valibot'

export const MANIFEST_FILE = 'manifest.json'
/** The file after the manifest, with its SHA-256 in hex. */
export const MANIFEST_HASH_FILE = 'manifest.json.sha256'
/** The format of the archive. A later one that this release cannot read has a higher number. */
export const FORMAT = 1
export const MANIFEST_BYTES_MAX = 256 * 1024 * 1024

const count = v.pipe(v.number(), v.integer(), v.minValue(0))

const manifestSchema = v.object({
  format: v.literal(FORMAT),
  /** The release that wrote the backup. */
  version: v.string(),
  created_at: v.pipe(v.string(), v.isoTimestamp()),
  /** The schema version of the database. */
  schema: count,
  /** True: the key of the encrypted values and every secret of the configuration are in the backup. */
  with_secrets: v.boolean(),
  /** The ids of the keys that encrypted values of the installation need. */
  key_ids: v.array(v.string()),
  /** The keys and sections that were left out of the configuration, because they hold secrets in plain text. */
  left_out: v.array(v.string()),
  /** The files by their path below the data directory, with `/` between names. */
  files: v.array(v.object({ path: v.string(), bytes: count, sha256: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)) })),
  /** The symbolic links and their targets. Release 0.1.0 did not list them. */
  links: v.optional(v.array(v.object({ path: v.string(), target: v.string() }))),
})

export type Manifest = v.InferOutput<typeof manifestSchema>

/** Throws `invalid_request` for a text that is not a manifest which this release can read. */
export function parseManifest(text: string): Manifest {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new AppError('invalid_request', 'The manifest of the backup is not valid JSON.', { cause })
  }
  const parsed = v.safeParse(manifestSchema, value)
  if (parsed.success) return parsed.output
  const format = v.safeParse(v.object({ format: v.number(), version: v.string() }), value)
  throw new AppError(
    'invalid_request',
    format.success && format.output.format > FORMAT
      ? `The backup was written by release ${format.output.version} in format ${format.output.format}; this release reads format ${FORMAT}. Restore it with that release.`
      : `The manifest of the backup is not valid: ${v.flatten(parsed.issues).root?.[0] ?? Object.keys(v.flatten(parsed.issues).nested ?? {}).join(', ')}.`,
  )
}
