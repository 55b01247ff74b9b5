/**
 * The configuration of a cluster, whose text is in the database. The file of each node only has what belongs to that node: `[store]`,
 * `[cluster]`, where it listens, and its hardware. The text that a node reads is the shared one with these keys of its own file.
 */
import { AppError, type Feature, ROWS, type SharedConfig } from '@sluice/sdk'
import { type ConfigSource, parseConfig, readConfigText, sectionsOf } from '../read/read-config.ts'
import { followPath, formatKeyPath, type KeyPath, parseKeyPath } from '../toml/key-path.ts'
import { parseToml, withoutMark } from '../toml/parse-toml.ts'
import { isTable } from '../toml/unknown-keys.ts'
import type { LoadedConfig } from '../types.ts'
import { assignInToml } from './assign-in-toml.ts'
import { removeFromToml } from './remove-from-toml.ts'
import { saveConfig } from './save-config.ts'
import { formatLiteral } from './toml-literal.ts'
import { writeValue } from './write-toml.ts'

/** The text that a node reads, and the version of its shared part. */
export interface NodeText {
  readonly text: string
  readonly version: number
}

const LISTENING: readonly KeyPath[] = [
  ['gateway', 'host'],
  ['gateway', 'port'],
]

/** The keys and tables that belong to a node. */
export function nodePaths(features: readonly Feature[]): readonly KeyPath[] {
  const hardware = new Set<string>(ROWS.flatMap(([id, row]) => (row.kind === 'hardware' ? [id] : [])))
  const sections = sectionsOf(features).filter(({ owner }) => hardware.has(owner))
  const paths = new Set(['store', 'cluster', ...sections.map(({ section }) => section.path)])
  return [...LISTENING, ...[...paths].map(parseKeyPath)]
}

/** Returns the text without what belongs to a node. */
export async function sharedPart({ features }: Pick<ConfigSource, 'features'>, text: string): Promise<string> {
  let shared = withoutMark(text)
  for (const path of nodePaths(features)) shared = await removeFromToml(shared, path)
  const rest = shared.trim()
  return rest === '' ? '' : `${rest}\n`
}

/** Returns the shared text with the keys of the node's own file. */
export async function nodeText(source: Pick<ConfigSource, 'features' | 'configFile'>, shared: string, own: string): Promise<string> {
  const values = await parseToml(withoutMark(own), source.configFile)
  let text = await sharedPart(source, shared)
  for (const path of nodePaths(source.features)) {
    for (const [key, value] of leaves(path, followPath(values, path))) {
      text = await assignInToml(text, { path: key, literal: await writeValue(value), section: key.length - 1 })
    }
  }
  return text
}

/** A table becomes its keys, so that it can have a header. */
function leaves(path: KeyPath, value: unknown): [KeyPath, unknown][] {
  if (value === undefined) return []
  if (!isTable(value)) return [[path, value]]
  return Object.entries(value).flatMap(([name, child]) => leaves([...path, name], child))
}

/** Reads what is in force: the file, or the shared text with the keys of the file. */
export async function readSourceText(source: ConfigSource): Promise<string> {
  if (source.configValues) return ''
  return source.shared ? (await readNodeText(source, source.shared)).text : readConfigText(source.configFile)
}

/** Reads and validates what `readSourceText` returns. Throws as `readConfig` does. */
export const readSourceConfig = async (source: ConfigSource): Promise<LoadedConfig> => parseConfig(source, await readSourceText(source))

/** Returns where the value of a key is kept, for people. */
export function placeOfKey({ shared, features, configFile }: ConfigSource, key: string): string {
  const path = parseKeyPath(key)
  const isOfNode = nodePaths(features).some((own) => own.every((step, at) => step === path[at]))
  return shared && !isOfNode ? 'the configuration of the cluster' : configFile
}

/** Throws `unavailable` before the first version. */
export async function readNodeText(source: ConfigSource, shared: SharedConfig): Promise<NodeText> {
  const [config, own] = await Promise.all([shared.read(), readConfigText(source.configFile)])
  if (!config) throw new AppError('unavailable', 'The cluster has no configuration yet: start one of its nodes.')
  return { text: await nodeText(source, config.text, own), version: config.version }
}

/**
 * Reads the text of a node that starts. The first node of a cluster stores the shared part of its file. `ignored` names the keys and
 * sections of the file that another text has replaced.
 */
export async function joinSharedConfig(
  source: ConfigSource,
  shared: SharedConfig,
  by: string,
): Promise<NodeText & { readonly isFirst: boolean; readonly ignored: readonly string[] }> {
  const own = await readConfigText(source.configFile)
  const part = await sharedPart(source, own)
  const stored = (await shared.read()) ? undefined : await shared.replace(part, 0, by)
  const config = stored ?? (await shared.read())
  if (!config) throw new AppError('unavailable', 'The configuration of the cluster cannot be read now.')
  const isEmpty = (value: unknown): boolean => isTable(value) && Object.keys(value).length === 0
  const given = config.text === part ? [] : Object.entries(await parseToml(part, source.configFile))
  const ignored = given.flatMap(([name, value]) => (isEmpty(value) ? [] : [name]))
  return { text: await nodeText(source, config.text, own), version: config.version, isFirst: stored !== undefined, ignored }
}

export interface SaveShared {
  /** The text before the change, and the version of its shared part. */
  readonly before: NodeText
  readonly text: string
  readonly by: string
}

/** Stores a changed text: the keys of the node in its file, the rest in the database. Throws `conflict` when it has changed meanwhile. */
export async function saveNodeText(source: ConfigSource, shared: SharedConfig, { before, text, by }: SaveShared): Promise<void> {
  const [old, now] = [await sharedPart(source, before.text), await sharedPart(source, text)]
  const own = await readConfigText(source.configFile)
  const changed = await withNodeKeys(source, own, text)
  if (old !== now && !(await shared.replace(now, before.version, by)))
    throw new AppError('conflict', 'The configuration of the cluster has changed since it was read; nothing was saved')
  if (changed !== own) await saveConfig({ file: source.configFile, text: changed, expected: own === '' ? undefined : own })
}

/** Returns the node's own text with the keys of the node as another text has them. */
async function withNodeKeys({ features, configFile }: ConfigSource, own: string, text: string): Promise<string> {
  const [before, after] = [await parseToml(withoutMark(own), configFile), await parseToml(withoutMark(text), configFile)]
  let changed = own
  for (const path of nodePaths(features)) {
    const old = new Map(leaves(path, followPath(before, path)).map(([key, value]) => [formatKeyPath(key), formatLiteral(value)]))
    const now = leaves(path, followPath(after, path))
    const names = new Set(now.map(([key]) => formatKeyPath(key)))
    for (const name of old.keys()) if (!names.has(name)) changed = await removeFromToml(changed, parseKeyPath(name))
    for (const [key, value] of now) {
      if (old.get(formatKeyPath(key)) === formatLiteral(value)) continue
      changed = await assignInToml(changed, { path: key, literal: await writeValue(value), section: key.length - 1 })
    }
  }
  return changed
}
