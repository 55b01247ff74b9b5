/** The configuration for editors that are not the command line: the values in force, and changes that are shown before they are saved. */
import { AppError, type Feature, loadFeatures, sha256Hex } from '@sluice/sdk'
import { configSchema } from '../describe/json-schema.ts'
import { effectiveConfig } from '../read/effective-config.ts'
import { type ConfigSource, parseConfig, sectionsOf } from '../read/read-config.ts'
import { CORE_SECTIONS } from '../sections/core-sections.ts'
import { followPath, formatKeyPath, type KeyPath, parseKeyPath } from '../toml/key-path.ts'
import type { LeftOut, LoadedConfig } from '../types.ts'
import { nodePaths, readSourceText } from './cluster-text.ts'
import { type Change, setValues } from './edit-config.ts'
import { openFile } from './set-config.ts'
import { writeValue } from './write-toml.ts'

/** The text that replaces a secret. */
const HIDDEN = '[secret]'

export type Leaf = readonly [path: KeyPath, value: unknown]

/** Returns every value that is not a table, with its path; a list is one value. */
export function leavesOf(value: unknown, path: KeyPath = []): Leaf[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[path, value]]
  return Object.entries(value).flatMap(([name, child]) => leavesOf(child, [...path, name]))
}

export interface ShownKey {
  readonly key: string
  /** A secret is `[secret]`. */
  readonly value: unknown
  readonly source: 'file' | 'environment' | 'default'
  /** The variable that the value is from. */
  readonly variable: string | null
}

export interface ShownConfig {
  readonly file: string
  /** Changes whenever the file does. */
  readonly version: string
  /** False: a program that embeds Sluice holds the configuration. */
  readonly isEditable: boolean
  /** True: the database of the cluster holds the configuration, except for `own`. */
  readonly isShared: boolean
  /** The sections and keys that the file of this node holds in a cluster with a shared configuration. */
  readonly own: readonly string[]
  readonly keys: readonly ShownKey[]
  readonly warnings: readonly string[]
  readonly leftOut: readonly LeftOut[]
}

/** A key to change; a value of null removes it from the file. */
export interface SettingChange {
  readonly key: string
  readonly value?: unknown
}

export interface ShownChange {
  readonly key: string
  /** The effective values; a secret is `[secret]`, and null means none. */
  readonly before: unknown
  readonly after: unknown
  readonly isSecret: boolean
}

export interface ChangePreview {
  readonly version: string
  readonly changes: readonly ShownChange[]
  readonly warnings: readonly string[]
}

const versionOf = (text: string | undefined): string => sha256Hex(text ?? '')

const changedMeanwhile = (): AppError => new AppError('conflict', 'The configuration was changed meanwhile: load it again')

/** Returns the values of the file, the environment and the defaults. Throws `config_invalid` with every problem. */
export async function shownConfig(source: ConfigSource): Promise<ShownConfig> {
  const text = await readSourceText(source)
  const config = await parseConfig(source, text)
  return {
    file: source.configFile,
    version: versionOf(text),
    isEditable: source.configValues === undefined,
    isShared: isSharedSource(source),
    own: isSharedSource(source) ? nodePaths(source.features).map(formatKeyPath) : [],
    keys: leavesOf(effective(config, source.features)).map(([path, value]) => shownKey(config, path, value)),
    warnings: config.warnings,
    leftOut: config.leftOut,
  }
}

const isSharedSource = ({ shared, configValues }: ConfigSource): boolean => shared !== undefined && configValues === undefined

function shownKey(config: LoadedConfig, path: KeyPath, value: unknown): ShownKey {
  const source = config.source(path)
  return { key: formatKeyPath(path), value, source: source.kind, variable: source.kind === 'environment' ? source.variable : null }
}

const effective = (config: LoadedConfig, features: readonly Feature[]): Record<string, unknown> =>
  effectiveConfig(config, features, CORE_SECTIONS)

/** Returns the JSON Schema of the file. Loads the features that the file does not name: their sections are without keys until then. */
export async function shownSchema({ features }: Pick<ConfigSource, 'features'>): Promise<object> {
  await loadFeatures(features)
  return configSchema(sectionsOf(features))
}

/** Checks changes and shows what they would do, without saving them. Throws as `sluice config set` does. */
export async function previewChanges(source: ConfigSource, wanted: readonly SettingChange[]): Promise<ChangePreview> {
  return (await prepare(source, wanted)).preview
}

/** Makes all changes or none. Throws as `sluice config set` does, and `conflict` when the file is not of this version. */
export async function saveChanges(source: ConfigSource, wanted: readonly SettingChange[], version: string): Promise<ChangePreview> {
  const { preview, text, save } = await prepare(source, wanted)
  if (preview.version !== version) throw changedMeanwhile()
  await save(text)
  return { ...preview, version: versionOf(text) }
}

async function prepare(source: ConfigSource, wanted: readonly SettingChange[]) {
  const { options, save, expected } = await openFile(source)
  const changes = await Promise.all(wanted.map(readChange))
  const { text, secrets } = await setValues({ ...options, changes })
  // A file that is not valid can be repaired here, too.
  const before = await parseConfig(source, options.text).catch(() => undefined)
  const after = await parseConfig(source, text)
  const [old, now] = [before && effective(before, source.features), effective(after, source.features)]
  const shown = changes.map(({ path: key }, index): ShownChange => {
    const path = parseKeyPath(key)
    return { key, before: followPath(old, path) ?? null, after: followPath(now, path) ?? null, isSecret: secrets[index] === true }
  })
  return { text, save, preview: { version: versionOf(expected), changes: shown, warnings: after.warnings } }
}

/** A page that sends back what it was shown would replace a secret by its mask. */
async function readChange({ key, value }: SettingChange): Promise<Change> {
  if (JSON.stringify(value ?? null).includes(HIDDEN))
    throw new AppError(
      'invalid_request',
      `\`${key}\` would be set to ${HIDDEN}, which stands for a secret: send the secret itself, or leave the key out`,
    )
  return { path: key, value: value === null || value === undefined ? undefined : await writeValue(value) }
}
