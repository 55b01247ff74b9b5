/** Reads and validates the configuration for the daemon, `config check` and every other command. */

import { readFile } from 'node:fs/promises'
import { isTimezone } from '@sluice/kit/timezone'
import {
  AppError,
  buildHint,
  checkFeatures,
  type Feature,
  isUnloaded,
  loadFeatures,
  ROWS,
  type Section,
  type SharedConfig,
  sectionsOfFeature,
} from '@sluice/sdk'
import { openSecretBox } from '@sluice/store/secret-box'
import { routingFindings, workspaceFindings } from '../sections/check-agents.ts'
import { clusterFindings } from '../sections/cluster-section.ts'
import { routingSections } from '../sections/configured-agents.ts'
import {
  backupSection,
  CORE_SECTIONS,
  observabilityBackends,
  observabilitySection,
  sandboxSection,
  storeSection,
} from '../sections/core-sections.ts'
import type { Finding } from '../toml/problem.ts'
import type { LeftOut, LoadedConfig, OwnedSection } from '../types.ts'
import { findingsError, loadConfig } from './load-config.ts'

export interface ConfigSource {
  /** The absolute path of the file. When the file does not exist, every key has its default. */
  readonly configFile: string
  readonly dataDir: string
  readonly features: readonly Feature[]
  readonly env: Readonly<Record<string, string | undefined>>
  /** The configuration itself, in place of the file, in the form of a parsed TOML text, such as `{ gateway: { port: 0 } }`. */
  readonly configValues?: ConfigValues | undefined
  /** The configuration of a cluster, which replaces the file except for the keys of the node. */
  readonly shared?: SharedConfig | undefined
}

/** The sections of a configuration as nested plain objects. A member that is undefined counts as absent. */
export type ConfigValues = Readonly<Record<string, unknown>>

/** Returns the sections of the core and of the features of a build. */
export const sectionsOf = (features: readonly Feature[]): OwnedSection[] => [
  ...CORE_SECTIONS.map((section): OwnedSection => ({ owner: 'core', section })),
  ...features.flatMap((feature) => {
    const unloaded = isUnloaded(feature) ? ({ isUnloaded: true } as const) : {}
    return sectionsOfFeature(feature).map((section): OwnedSection => ({ owner: feature.id, section, ...unloaded }))
  }),
  ...routingSections(features).map(
    (section): OwnedSection => ({ owner: 'core', section: section as unknown as Section, isAddition: true }),
  ),
]

/** Throws `config_invalid` with every problem in its fields. */
export async function readConfig(source: ConfigSource): Promise<LoadedConfig> {
  return parseConfig(source, source.configValues ? '' : await readConfigText(source.configFile))
}

/** Returns the text of the file; empty when the file does not exist. Throws `config_invalid` when it cannot be read. */
export async function readConfigText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw new AppError('config_invalid', `${file} cannot be read: ${(cause as Error).message}`, { cause })
  }
}

/** Reads the text of the file; the values of the source, if it has any, take the place of the text. Throws as `readConfig` does. */
export async function parseConfig(source: ConfigSource, text: string): Promise<LoadedConfig> {
  const { features, env } = source
  checkFeatures(features)
  await loadFeatures(features, (feature) => isNamed(feature, text, env))
  try {
    const config = await parseLoaded(source, text)
    const missing = new Set<string>(config.leftOut.map(({ feature }) => feature))
    return (await loadFeatures(features, ({ id }) => missing.has(id))) ? await parseLoaded(source, text) : config
  } catch (error) {
    // The problems of a wrong file are complete only with the keys of every feature.
    if (await loadFeatures(features)) return await parseLoaded(source, text)
    throw error
  }
}

/** Whether the file may have the section of the feature, or the environment a value of it: a variable has the name of its section. */
function isNamed(feature: Feature, text: string, env: ConfigSource['env']): boolean {
  return sectionsOfFeature(feature).some(({ path }) => {
    const name = path.split('.').at(-1) ?? ''
    return text.includes(name) || Object.keys(env).some((variable) => variable.includes(name.toUpperCase()))
  })
}

async function parseLoaded({ configFile, configValues, dataDir, features, env }: ConfigSource, text: string): Promise<LoadedConfig> {
  const box = openSecretBox(dataDir)
  const config = await loadConfig({
    file: configFile,
    text,
    values: configValues,
    sections: sectionsOf(features),
    env,
    decrypt: (value, path) => box.decrypt(value, path),
  })
  const findings = [
    ...(await workspaceFindings(config, dataDir)),
    ...routingFindings(config, features),
    ...features.flatMap((feature) => sectionFindings(config, feature)),
    ...(await scheduleFindings(config)),
    ...storeFindings(config),
    ...clusterFindings(config, config.core(storeSection).backend),
  ]
  if (findings.length > 0) throw await findingsError({ file: configFile, text, values: configValues }, findings)
  const leftOut = [...config.leftOut, ...leftOutBackends(config, features)]
  return leftOut.length === config.leftOut.length ? config : { ...config, leftOut }
}

/** Finds mistakes that only several sections of one feature together show. */
function sectionFindings(config: LoadedConfig, feature: Feature): Finding[] {
  const values = sectionsOfFeature(feature).flatMap(({ path }) => {
    const state = config.of(feature.id, path)
    const isOn = state.state === 'configured' && !('enabled' in state.value && state.value.enabled === false)
    return isOn ? [[path, state.value] as const] : []
  })
  if (!feature.checkSections || values.length < 2) return []
  return feature.checkSections(new Map(values)).map(({ section, key, message }) => {
    const path = [...section.split('.'), key]
    return { path, at: 'value', message: `\`${path.join('.')}\`: ${message}` }
  })
}

function storeFindings(config: LoadedConfig): Finding[] {
  const { backend, url } = config.core(storeSection)
  if (backend === 'sqlite' || url !== undefined) return []
  const message = '`store.url` must name the server, such as postgres://sluice:password@db.example/sluice'
  return [{ path: ['store', 'backend'], at: 'value', message }]
}

/** The library for cron expressions is loaded only for a schedule. */
async function scheduleFindings(config: LoadedConfig): Promise<Finding[]> {
  const { schedule, timezone } = config.core(backupSection)
  if (schedule === undefined) return []
  const { expressionProblem } = await import('@sluice/kit/cron-expression')
  const problem = expressionProblem(schedule, Date.now())
  return [
    ...(problem === undefined
      ? []
      : [{ path: ['backup', 'schedule'], at: 'value' as const, message: `\`backup.schedule\` is not valid: ${problem}` }]),
    ...(isTimezone(timezone)
      ? []
      : [
          {
            path: ['backup', 'timezone'],
            at: 'value' as const,
            message: '`backup.timezone` must be the name of a time zone, such as Europe/Oslo',
          },
        ]),
  ]
}

/** Lists the configured observability backends that this build leaves out. */
function leftOutBackends(config: LoadedConfig, features: readonly Feature[]): LeftOut[] {
  const named = [
    ...observabilityBackends(config.core(observabilitySection)).map((backend) => ({ section: observabilitySection.path, backend })),
    { section: sandboxSection.path, backend: config.core(sandboxSection).backend },
    { section: storeSection.path, backend: config.core(storeSection).backend },
  ]
  return named.flatMap(({ section, backend }) =>
    ROWS.filter(([id, row]) => row.backend === backend && !features.some((feature) => feature.id === id)).map(([feature]) => ({
      section,
      feature,
      build: buildHint(feature),
    })),
  )
}
