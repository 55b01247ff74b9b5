/**
 * The validator of the daemon, `config check` and the API. Validates the text of the file and the environment against the
 * sections of this build and reports every mistake at once.
 */
import { type AppError, type ConfigSchema, type FeatureId, ROWS, type Section } from '@sluice/sdk'
import type * as v from 'valibot'
import { followPath, formatKeyPath, parseKeyPath } from '../toml/key-path.ts'
import { locateFindings } from '../toml/locate.ts'
import { parseToml } from '../toml/parse-toml.ts'
import { configError, type Finding } from '../toml/problem.ts'
import { keyReader } from '../toml/schema-keys.ts'
import { isTable } from '../toml/unknown-keys.ts'
import type { LoadedConfig, OwnedSection, SectionState } from '../types.ts'
import { checkNames } from './check-names.ts'
import type { Environment } from './env-overlay.ts'
import { carryOver, FORMER_KEYS, type FormerKey } from './former-keys.ts'
import { knownKeys } from './known-keys.ts'
import type { Decrypt } from './open-secrets.ts'
import { readSection, type SectionReading } from './read-section.ts'
import { unknownVariables } from './unknown-variables.ts'

export interface LoadOptions {
  /** The path for problems; the file is not read. */
  readonly file: string
  /** The text of the file; `undefined` if the file does not exist. */
  readonly text: string | undefined
  /** Takes the place of the file: what its text would be parsed to. */
  readonly values?: Readonly<Record<string, unknown>> | undefined
  readonly sections: readonly OwnedSection[]
  readonly env: Environment
  readonly decrypt: Decrypt
  /** Default: the former keys of this release. */
  readonly formerKeys?: readonly FormerKey[]
}

/** Throws `config_invalid` with every problem. Loads no parser without a text. */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const { file, text, values, sections, env, formerKeys = FORMER_KEYS } = options
  const given = values ? withoutUndefined(values) : text?.trim() ? await parseToml(text, file) : {}
  const { data, origin, ...former } = carryOver(given, formerKeys)
  const decrypt: Decrypt = (value, path) => options.decrypt(value, former.secretPath(path))
  const keyOf = keyReader()
  const names = Object.keys(data).length > 0 ? checkNames(data, knownKeys(sections, ROWS, keyOf)) : { findings: [], leftOut: [] }
  const readings = new Map<string, SectionReading>()
  for (const owned of sections) {
    const alone = sections.every((other) => other === owned || other.isAddition || other.section.path !== owned.section.path)
    readings.set(id(owned.owner, owned.section.path), await readSection(owned, { file: data, env, decrypt, alone, keyOf }))
  }
  const all = [...readings.values()]
  const findings = [...names.findings, ...all.flatMap((reading) => reading.findings)]
  const inFile = findings.map((finding) => ({ ...finding, path: origin(finding.path) ?? finding.path }))
  if (inFile.length > 0) throw await findingsError({ file, text, values }, inFile)
  const plain = [...new Set(all.flatMap((reading) => reading.plain))]
  // A program that hands its configuration over as values keeps the secrets elsewhere, and `seal` does not know former keys.
  const plainSecrets = values ? [] : plain.filter((key) => !origin(parseKeyPath(key)))
  const warnings = [
    ...former.warnings,
    ...new Set(all.flatMap((reading) => reading.warnings)),
    ...plainSecrets.map((key) => `\`${key}\` is in plain text in the file; \`sluice config seal\` encrypts it`),
    ...unknownVariables(env, sections, keyOf),
  ]
  return loadedConfig({ file, data, sections, readings, leftOut: names.leftOut, warnings, plainSecrets })
}

const id = (owner: string, path: string): string => `${owner} ${path}`

/** The error for mistakes, with their lines where there is a file. Reports a mistake once when owners that share a schema find it several times. */
export async function findingsError(
  { file, text, values }: Pick<LoadOptions, 'file' | 'text' | 'values'>,
  findings: readonly Finding[],
): Promise<AppError> {
  const once = [...new Map(findings.map((finding) => [finding.message, finding])).values()]
  if (!values) return configError(await locateFindings(file, text, once))
  return configError(once.map(({ path, message }) => ({ file: 'config', key: formatKeyPath(path), message })))
}

/** A copy without the members that are undefined, which TOML cannot express. */
function withoutUndefined(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const known = Object.entries(values).filter(([, value]) => value !== undefined)
  return Object.fromEntries(known.map(([name, value]) => [name, isTable(value) ? withoutUndefined(value) : value]))
}

interface LoadedParts extends Pick<LoadedConfig, 'file' | 'leftOut' | 'warnings' | 'plainSecrets'> {
  readonly data: Readonly<Record<string, unknown>>
  readonly sections: readonly OwnedSection[]
  readonly readings: ReadonlyMap<string, SectionReading>
}

const missing = (owner: string, path: string): never => {
  throw new Error(`the configuration was loaded without section ${path} of ${owner}`)
}

function loadedConfig({ file, data, sections, readings, leftOut, warnings, plainSecrets }: LoadedParts): LoadedConfig {
  const reading = (owner: string, path: string): SectionReading => readings.get(id(owner, path)) ?? missing(owner, path)
  const hashes = new Map<string, string>()
  /** By path alone: the core reads its settings several times for each message. */
  const cores = new Map<string, SectionReading>()
  for (const { owner, section } of sections) if (owner === 'core') cores.set(section.path, reading(owner, section.path))
  return {
    file,
    leftOut,
    warnings,
    plainSecrets,
    core<Schema extends ConfigSchema>({ path }: Section<Schema>): v.InferOutput<Schema> {
      const { state } = cores.get(path) ?? missing('core', path)
      if (state.state === 'unconfigured') throw new Error(`section ${path} of the core has a key without a default`)
      return state.value as v.InferOutput<Schema>
    },
    hasCore: (path) => cores.has(path),
    of(owner: FeatureId, at?: string): SectionState {
      const path = at ?? sections.find((owned) => owned.owner === owner)?.section.path
      return path === undefined ? { state: 'defaults', value: Object.freeze({}) } : reading(owner, path).state
    },
    source(path) {
      const dotted = path.map((_, index) => formatKeyPath(path.slice(0, index + 1)))
      for (const { variables } of readings.values()) {
        const variable = dotted.map((key) => variables.get(key)).find(Boolean)
        if (variable) return { kind: 'environment', variable }
      }
      return { kind: followPath(data, path) === undefined ? 'default' : 'file' }
    },
    hash(owner, path) {
      const known = hashes.get(id(owner, path)) ?? reading(owner, path).hash()
      hashes.set(id(owner, path), known)
      return known
    },
  }
}
