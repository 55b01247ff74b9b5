/** `sluice config check`, `get`, `seal`, `schema` and `init`. */
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import {
  CORE_SECTIONS,
  type ConfigSource,
  effectiveConfig,
  followPath,
  formatKeyPath,
  type KeyPath,
  type LoadedConfig,
  leftOutFiles,
  parseConfig,
  parseKeyPath,
  placeOfKey,
  readConfig,
  readNodeText,
  readSourceConfig,
  sectionsOf,
} from '@sluice/config'
import { withClusterConfig } from '@sluice/runtime/open-backend'
import { AppError, unloadedDefaults } from '@sluice/sdk'
import type { CliContext } from '../context.ts'

const EXIT_CONFIG = 78

/** Exits with 0 if the daemon would start and this build has every configured feature, else with 78. */
export async function check(context: CliContext): Promise<number> {
  const { out, json, configFile, dataDir, features } = context
  // The file alone first: it names the database that has the rest of the configuration.
  const own = await readConfig(context)
  const { shared, unread, leftOut: sections, warnings: configWarnings } = await checkShared(context, own)
  // Some mistakes show only when the features are built, such as the name of an unknown provider.
  const [{ openRuntime }, { unknownToolNames }, { checkCosts }] = await Promise.all([
    import('@sluice/daemon/open-runtime'),
    import('@sluice/runtime'),
    import('@sluice/runtime/doctor'),
  ])
  const openFeatures = (source: ConfigSource) => openRuntime({ ...context, ...source, quiet: true, only: 'features' })
  const runtime = shared === undefined ? await openFeatures(context) : await withClusterConfig(context, openFeatures)
  const prices = checkCosts(runtime.snapshot()).flatMap(({ detail, fix }) => (fix === null ? [] : [`${detail}: ${fix}`]))
  const warnings = [...configWarnings, ...unknownToolNames(runtime.snapshot()), ...prices]
  await runtime.close(0)
  const compiled = features.map(({ id }) => id)
  const leftOut = [...sections, ...leftOutFiles(dataDir, compiled)]
  const isComplete = leftOut.length === 0
  if (json)
    out.json({ file: configFile, cluster_version: shared ?? null, ok: isComplete, left_out: leftOut, warnings, unread: unread ?? null })
  else {
    if (unread !== undefined)
      out.warn(
        `${out.style('yellow', 'warning')}: the configuration of the cluster cannot be read, so only the file of this node was checked: ${unread}`,
      )
    for (const warning of warnings) out.warn(`${out.style('yellow', 'warning')}: ${warning}`)
    for (const { feature, build, ...place } of leftOut) {
      const configured = 'file' in place ? place.file : `[${place.section}]`
      out.warn(`${configured} is for ${feature}, which this build leaves out. To get it: ${build}`)
    }
    if (isComplete && shared !== undefined) out.print(`version ${shared} of the configuration of the cluster is valid with ${configFile}`)
    else if (isComplete) out.print(existsSync(configFile) ? `${configFile} is valid` : `${configFile} does not exist: all defaults`)
  }
  return isComplete ? 0 : EXIT_CONFIG
}

interface Checked extends Pick<LoadedConfig, 'leftOut' | 'warnings'> {
  /** The version of the configuration of the cluster that was read. */
  readonly shared?: number
  /** Why the configuration of the cluster could not be read. */
  readonly unread?: string
}

/** Reads what the node of a cluster would run: the configuration in the database with the keys of the file. */
async function checkShared(context: CliContext, own: LoadedConfig): Promise<Checked> {
  try {
    return await withClusterConfig(context, async (source: CliContext & ConfigSource) => {
      if (!source.shared) return own
      const { text, version } = await readNodeText(source, source.shared)
      const { leftOut, warnings } = await parseConfig(source, text)
      return { leftOut, warnings, shared: version }
    })
  } catch (error) {
    if (error instanceof AppError && error.code === 'unavailable')
      return { leftOut: own.leftOut, warnings: own.warnings, unread: error.message }
    throw error
  }
}

/** Prints effective values, with defaults and environment variables; a secret is printed as `[secret]`. */
export const get = (context: CliContext): Promise<number> => withClusterConfig(context, printValues)

async function printValues(context: CliContext & ConfigSource): Promise<number> {
  const { out, args, json, features, options } = context
  const [key] = args
  const path = key === undefined ? [] : parseKeyPath(key)
  const config = await readSourceConfig(context)
  const value = followPath(effectiveConfig(config, features, CORE_SECTIONS, unloadedDefaults), path)
  if (value === undefined)
    throw new AppError('not_found', `nothing is set for '${key}', and it has no default; 'sluice config schema' lists the keys`)
  if (options.source === true) await printSources(context, config, { value, path })
  else if (json || (typeof value === 'object' && value !== null)) out.json(value)
  else out.print(String(value))
  return 0
}

async function printSources(
  context: CliContext & ConfigSource,
  config: LoadedConfig,
  { value: values, path: top }: { readonly value: unknown; readonly path: KeyPath },
): Promise<void> {
  const { out, json } = context
  const { leavesOf } = await import('@sluice/config/settings')
  const rows = leavesOf(values, top).map(([path, value]) => {
    const source = config.source(path)
    const from =
      source.kind === 'file'
        ? placeOfKey(context, formatKeyPath(path))
        : source.kind === 'environment'
          ? `environment variable ${source.variable}`
          : 'default'
    return { key: formatKeyPath(path), value, source: source.kind, from }
  })
  if (json) out.json(rows.map(({ from, ...row }) => ({ ...row, ...(row.source === 'default' ? {} : { from }) })))
  else
    out.table(
      ['key', 'value', 'from'],
      rows.map((row) => [row.key, JSON.stringify(row.value), row.from]),
    )
}

/** Encrypts every secret that the file holds in plain text. */
export const seal = (context: CliContext): Promise<number> => withClusterConfig(context, sealAndReport)

async function sealAndReport(context: CliContext & ConfigSource): Promise<number> {
  const { out, json, configFile } = context
  const { sealConfig } = await import('@sluice/config/edit')
  const sealed = await sealConfig(context)
  if (json) out.json({ file: configFile, sealed })
  else if (sealed.length === 0) out.print(`${configFile} holds no secret in plain text`)
  else for (const key of sealed) out.print(`${key} encrypted in ${placeOfKey(context, key)}`)
  return 0
}

/** Prints the JSON Schema of the configuration file, for editors. */
export async function schema({ out, features }: CliContext): Promise<number> {
  const { configSchema } = await import('@sluice/config/json-schema')
  out.json(await configSchema(sectionsOf(features)))
  return 0
}

/** Writes a commented starter file. Throws `conflict` if the file exists. */
export async function init({ out, json, configFile, features }: CliContext): Promise<number> {
  const { starterConfig } = await import('@sluice/config/init-config')
  const text = starterConfig(sectionsOf(features))
  await mkdir(dirname(configFile), { recursive: true, mode: 0o700 })
  try {
    await writeFile(configFile, text, { flag: 'wx', mode: 0o600 })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EEXIST') throw new AppError('conflict', `${configFile} exists already`, { cause })
    throw new AppError('unavailable', `${configFile} cannot be written: ${(cause as Error).message}`, { cause })
  }
  if (json) out.json({ file: configFile })
  else out.print(`wrote ${configFile}`)
  return 0
}
