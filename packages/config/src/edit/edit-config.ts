/** Gets and sets keys in the text of the configuration. Comments stay, secrets are encrypted, and the result always loads. */
import { AppError, buildHint, howToGet, sha256Hex } from '@sluice/sdk'
import * as v from 'valibot'
import { formerKeyHint } from '../read/former-keys.ts'
import { type KnownTable, knownKeys, lookUp } from '../read/known-keys.ts'
import { type LoadOptions, loadConfig } from '../read/load-config.ts'
import { ENCRYPTED } from '../read/open-secrets.ts'
import { describeKey } from '../toml/describe-key.ts'
import { explainIssue } from '../toml/explain-issue.ts'
import { hasSecret } from '../toml/has-secret.ts'
import { followPath, formatKeyPath, type KeyPath, parseKeyPath } from '../toml/key-path.ts'
import { parseToml, withoutMark } from '../toml/parse-toml.ts'
import { configError } from '../toml/problem.ts'
import { type Key, sectionKeys } from '../toml/schema-keys.ts'
import { syntaxProblem } from '../toml/syntax-problem.ts'
import { unknownKey } from '../toml/unknown-keys.ts'
import type { LoadedConfig, OwnedSection } from '../types.ts'
import { assignInToml } from './assign-in-toml.ts'
import { readGiven } from './given-value.ts'
import { removeFromToml } from './remove-from-toml.ts'
import { type Encrypt, sealSecrets } from './seal-secrets.ts'
import { writeValue } from './write-toml.ts'

export interface Change {
  /** The dotted key, such as `provider.fallback[0].model`. */
  readonly path: string
  /** A TOML value, or plain text when the key is a text. `undefined` removes the key, table or entry. */
  readonly value: string | undefined
}

export interface SetOptions extends LoadOptions {
  /** The changes, applied in this order. */
  readonly changes: readonly Change[]
  readonly encrypt: Encrypt
}

export interface SetResult {
  readonly text: string
  /** One flag for each change: true when the value is or may hold a secret and is encrypted in the text. */
  readonly secrets: readonly boolean[]
}

/**
 * Returns the text of the file with every key changed; `saveConfig` saves it. Throws `invalid_request` for an unknown key or a
 * wrong value, `not_compiled` for a key of a feature that this build leaves out, and `config_invalid` when the result would not load.
 */
export async function setValues(options: SetOptions): Promise<SetResult> {
  const { text = '', file, changes } = options
  const body = withoutMark(text)
  // Parsing comes first because it limits the size and depth of the file.
  await parseToml(body, file)
  let edited = body
  const secrets: boolean[] = []
  for (const one of changes) {
    const result = await change(options, one, edited).catch(async (error) => {
      // A stack overflow is an error of the parser, too.
      throw error instanceof SyntaxError || error instanceof RangeError ? configError([await syntaxProblem(file, body, error)]) : error
    })
    edited = result.text
    secrets.push(result.secret)
  }
  const changed = text.slice(0, text.length - body.length) + edited
  await loadConfig({ ...options, text: changed })
  return { text: changed, secrets }
}

/** Tells whether a key is a secret and returns the change that encrypts it when the file holds it in plain text. Throws as `setValues` does. */
export async function findPlainSecret(
  { text = '', file, sections }: Pick<LoadOptions, 'text' | 'file' | 'sections'>,
  dotted: string,
): Promise<{ readonly secret: boolean; readonly sealing?: Change }> {
  const path = parseKeyPath(dotted)
  const secret = findKey(sections, path).key.metadata.secret === true
  const value = followPath(await parseToml(withoutMark(text), file), path)
  const isPlain = secret && typeof value === 'string' && value.trim() !== '' && !value.startsWith(ENCRYPTED)
  return isPlain ? { secret, sealing: { path: dotted, value: await writeValue(value) } } : { secret }
}

async function change(
  { sections, encrypt }: SetOptions,
  { path: dotted, value }: Change,
  text: string,
): Promise<{ readonly text: string; readonly secret: boolean }> {
  const path = parseKeyPath(dotted)
  // An unknown key may be removed, so that an operator can correct a mistyped one.
  if (value === undefined) return { text: await removeFromToml(text, path), secret: false }
  const { key, section } = findKey(sections, path)
  const given = await readGiven(value, key)
  if (!given) throw new AppError('invalid_request', `\`${formatKeyPath(path)}\` must be ${describeKey(key)}`)
  refuseInvalid(given.data, key, path)
  const secret = hasSecret(key)
  const { digestKey } = key.metadata
  if (digestKey !== undefined && typeof given.data === 'string' && !given.data.startsWith(ENCRYPTED))
    return { text: await assignDigest(text, { path, digestKey, section: section.path.length }, given.data), secret }
  const literal = secret ? await writeValue(await sealSecrets(given.data, key, path, encrypt)) : given.literal
  return { text: await assignInToml(text, { path, literal, section: section.path.length }), secret }
}

interface DigestPlace {
  readonly path: KeyPath
  readonly digestKey: string
  readonly section: number
}

/** Writes the SHA-256 of a secret to its digest key, and removes the key of the secret. */
async function assignDigest(text: string, { path, digestKey, section }: DigestPlace, secret: string): Promise<string> {
  const literal = await writeValue(sha256Hex(secret.trim()))
  const assigned = await assignInToml(text, { path: [...path.slice(0, -1), digestKey], literal, section })
  return removeFromToml(assigned, path)
}

/** Returns the effective value of a key, from the file, the environment or its default; secrets as `Secret`, `undefined` without a value. Throws as `setValues` does. */
export function getValue(loaded: LoadedConfig, sections: readonly OwnedSection[], dotted: string): unknown {
  const path = parseKeyPath(dotted)
  const { section } = findKey(sections, path)
  const steps = path.slice(section.path.length)
  const owners = sections.filter((owned) => owned.section.path === section.path.join('.'))
  const owned = owners.find((candidate) => sectionKeys(candidate.section.schema).has(String(steps[0]))) ?? owners[0]
  if (!owned) return undefined
  const state = owned.owner === 'core' ? { value: loaded.core(owned.section) } : loaded.of(owned.owner, owned.section.path)
  return followPath('value' in state ? state.value : undefined, steps)
}

function findKey(sections: readonly OwnedSection[], path: KeyPath): { readonly key: Key; readonly section: KnownTable } {
  const found = lookUp(knownKeys(sections), path)
  switch (found.kind) {
    case 'key':
      return found
    case 'section':
      throw new AppError('invalid_request', `[${formatKeyPath(path)}] is a section; name one of its keys`)
    case 'left_out': {
      const build = buildHint(found.feature)
      const detail = `\`${formatKeyPath(path)}\` belongs to ${found.feature}, which this build leaves out; to get it, ${howToGet(found.feature)}`
      throw new AppError('not_compiled', detail, { fields: { feature: found.feature, build } })
    }
    case 'unknown':
      throw new AppError('invalid_request', formerKeyHint(path) ?? unknownKey(path.slice(0, found.at + 1), found.names))
  }
}

function refuseInvalid(data: unknown, key: Key, path: KeyPath): void {
  if (key.metadata.secret && typeof data === 'string' && data.trim() === '')
    throw new AppError('invalid_request', `\`${formatKeyPath(path)}\` must be a string that is not blank`)
  if (!key.schema) return
  const { issues } = v.safeParse(key.schema as v.GenericSchema, data)
  if (!issues) return
  const findings = issues.map((issue) => explainIssue(issue, { top: key, section: path, variables: new Map() }))
  throw new AppError('invalid_request', findings.map(({ message }) => message).join('; '))
}
