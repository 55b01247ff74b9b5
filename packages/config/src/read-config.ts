/** Reads and validates the configuration: the one way for the daemon, `config check` and every other command. */
import { readFile, stat } from 'node:fs/promises'
import { AppError, buildHint, type Feature, ROWS } from '@sluice/sdk'
import { openSecretBox } from '@sluice/store/secret-box'
import { CORE_SECTIONS, observabilityBackends, observabilitySection, sandboxSection } from './core-sections.ts'
import { loadConfig } from './load-config.ts'
import { locateFindings } from './toml/locate.ts'
import { configError } from './toml/problem.ts'
import type { LeftOut, LoadedConfig, OwnedSection } from './types.ts'
import { workspaceRoot } from './workspace-root.ts'

export interface ConfigSource {
  /** Absolute. A file that is not there means all defaults. */
  readonly configFile: string
  readonly dataDir: string
  readonly features: readonly Feature[]
  readonly env: Readonly<Record<string, string | undefined>>
}

/** The sections of the core and of a build's features. */
export const sectionsOf = (features: readonly Feature[]): OwnedSection[] => [
  ...CORE_SECTIONS.map((section): OwnedSection => ({ owner: 'core', section })),
  ...features.flatMap(({ id, section }): OwnedSection[] => (section ? [{ owner: id, section }] : [])),
]

/** Throws `config_invalid` with every problem in its fields. */
export async function readConfig(source: ConfigSource): Promise<LoadedConfig> {
  return parseConfig(source, await readConfigText(source.configFile))
}

/** The text of the file; empty if there is none. */
export async function readConfigText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw new AppError('config_invalid', `${file} cannot be read: ${(cause as Error).message}`, { cause })
  }
}

export async function parseConfig({ configFile, dataDir, features, env }: ConfigSource, text: string): Promise<LoadedConfig> {
  const box = openSecretBox(dataDir)
  const config = await loadConfig({
    file: configFile,
    text,
    sections: sectionsOf(features),
    env,
    decrypt: (value, path) => box.decrypt(value, path),
  })
  await refuseFile(workspaceRoot(config, dataDir), configFile, text)
  const leftOut = [...config.leftOut, ...leftOutBackends(config, features)]
  return leftOut.length === config.leftOut.length ? config : { ...config, leftOut }
}

/** Throws `config_invalid` where the workspace is a file: every tool would fail there. */
async function refuseFile(root: string, configFile: string, text: string): Promise<void> {
  const found = await stat(root).catch(() => undefined)
  if (!found || found.isDirectory()) return
  const message = `\`agent.workspace\` must be a folder, but ${root} is a file`
  throw configError(await locateFindings(configFile, text, [{ path: ['agent', 'workspace'], at: 'value', message }]))
}

/** A backend that is named and not in this build is left out like a section of its own would be. */
function leftOutBackends(config: LoadedConfig, features: readonly Feature[]): LeftOut[] {
  const named = [
    ...observabilityBackends(config.core(observabilitySection)).map((backend) => ({ section: observabilitySection.path, backend })),
    { section: sandboxSection.path, backend: config.core(sandboxSection).backend },
  ]
  return named.flatMap(({ section, backend }) =>
    ROWS.filter(([id, row]) => row.backend === backend && !features.some((feature) => feature.id === id)).map(([feature]) => ({
      section,
      feature,
      build: buildHint(feature),
    })),
  )
}
