/** Gets and sets single keys: the file keeps its comments, secrets are encrypted, and nothing that would not load comes out. */
import { AppError, buildHint } from '@sluice/sdk'
import * as v from 'valibot'
import { assignInToml } from './assign-in-toml.ts'
import { unknownKey } from './check-names.ts'
import { describeKey } from './describe-key.ts'
import { explainIssue } from './explain-issue.ts'
import { readGiven } from './given-value.ts'
import { formatKeyPath, type KeyPath, parseKeyPath } from './key-path.ts'
import { type KnownTable, knownKeys, lookUp } from './known-keys.ts'
import { type LoadOptions, loadConfig } from './load-config.ts'
import { hasSecret } from './open-secrets.ts'
import { parseToml, withoutMark } from './parse-toml.ts'
import { configError } from './problem.ts'
import { removeFromToml } from './remove-from-toml.ts'
import { type Key, sectionKeys } from './schema-keys.ts'
import { type Encrypt, sealSecrets } from './seal-secrets.ts'
import { syntaxProblem } from './syntax-problem.ts'
import { formatLiteral } from './toml-literal.ts'
import type { LoadedConfig, OwnedSection } from './types.ts'

export interface SetOptions extends LoadOptions {
  /** Dotted: `provider.fallback[0].model`. */
  readonly path: string
  /** A TOML value, or bare text where the schema wants text; `undefined` removes the key, the table or the entry. */
  readonly value: string | undefined
  readonly encrypt: Encrypt
}

export interface SetResult {
  readonly text: string
  /** True if what was set is a secret, or may hold one, and so stands in the text encrypted. */
  readonly secret: boolean
}

/**
 * The file's text with one key changed; saving is `saveConfig`'s. Throws `invalid_request` for a key or a value that does
 * not fit, `not_compiled` for a key of a feature this build lacks, `config_invalid` if the file would not load afterwards.
 */
export async function setValue(options: SetOptions): Promise<SetResult> {
  const { text = '', file } = options
  const body = withoutMark(text)
  // Before anything else reads it: this is where its size and its depth have their bounds.
  await parseToml(body, file)
  const result = await change(options, body).catch(async (error) => {
    // A stack that has overflown is the parser's too.
    throw error instanceof SyntaxError || error instanceof RangeError ? configError([await syntaxProblem(file, body, error)]) : error
  })
  const changed = text.slice(0, text.length - body.length) + result.text
  await loadConfig({ ...options, text: changed })
  return { ...result, text: changed }
}

async function change({ sections, path: dotted, value, encrypt }: SetOptions, text: string): Promise<SetResult> {
  const path = parseKeyPath(dotted)
  // A key nobody knows can be removed: that is how to mend a mistyped one.
  if (value === undefined) return { text: await removeFromToml(text, path), secret: false }
  const { key, section } = findKey(sections, path)
  const given = await readGiven(value, key)
  if (!given) throw new AppError('invalid_request', `\`${formatKeyPath(path)}\` must be ${describeKey(key)}`)
  refuseInvalid(given.data, key, path)
  const secret = hasSecret(key)
  const literal = secret ? formatLiteral(await sealSecrets(given.data, key, path, encrypt)) : given.literal
  return { text: await assignInToml(text, { path, literal, section: section.path.length }), secret }
}

/** The value in force, defaults and environment included, secrets as `Secret`; `undefined` if it has none. Throws like `setValue`. */
export function getValue(loaded: LoadedConfig, sections: readonly OwnedSection[], dotted: string): unknown {
  const path = parseKeyPath(dotted)
  const { section } = findKey(sections, path)
  const steps = path.slice(section.path.length)
  const owners = sections.filter((owned) => owned.section.path === section.path.join('.'))
  const owned = owners.find((candidate) => sectionKeys(candidate.section.schema).has(String(steps[0]))) ?? owners[0]
  if (!owned) return undefined
  const state = owned.owner === 'core' ? { value: loaded.core(owned.section) } : loaded.of(owned.owner)
  let value: unknown = 'value' in state ? state.value : undefined
  for (const step of steps) value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[step] : undefined
  return value
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
      const detail = `\`${formatKeyPath(path)}\` belongs to ${found.feature}, which this build leaves out; to get it: ${build}`
      throw new AppError('not_compiled', detail, { fields: { feature: found.feature, build } })
    }
    case 'unknown':
      throw new AppError('invalid_request', unknownKey(path.slice(0, found.at + 1), found.names))
  }
}

function refuseInvalid(data: unknown, key: Key, path: KeyPath): void {
  if (!key.schema) return
  const { issues } = v.safeParse(key.schema as v.GenericSchema, data)
  if (!issues) return
  const findings = issues.map((issue) => explainIssue(issue, { top: key, section: path, variables: new Map() }))
  throw new AppError('invalid_request', findings.map(({ message }) => message).join('; '))
}
