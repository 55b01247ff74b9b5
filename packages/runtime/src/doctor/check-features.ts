/** Checks the features of this build: their state, and the problems that they find themselves. */
import { readsPictures } from '@sluice/agent'
import { leftOutFiles } from '@sluice/config'
import { nearestNames, signalScope } from '@sluice/kit'
import { type CatalogueId, errorText, type FeatureId, howToGet, type Parts, type Policy, printableLine } from '@sluice/sdk'
import type { FeatureStatus } from '../features/feature-status.ts'
import type { Snapshot } from '../features/snapshot.ts'
import { type Check, fail, ok, warn } from './check.ts'

const CHECK_MS_MAX = 20_000

export function checkFeatures(features: readonly FeatureStatus[]): Check[] {
  const failed = features.filter(({ state }) => state === 'failed')
  if (failed.length === 0) return [ok('features', `${features.filter(({ compiled }) => compiled).length} compiled in`)]
  return failed.map(({ feature, reason }) =>
    fail('features', `${feature}: ${reason}`, `see the section of ${feature} in the configuration`),
  )
}

/** Finds files in the data directory that belong to features which this build leaves out. */
export function checkLeftOutFiles(dataDir: string, features: readonly FeatureStatus[]): Check[] {
  const compiled = features.flatMap((status) => (status.compiled ? [status.feature] : []))
  return leftOutFiles(dataDir, compiled).map(({ file, feature, build }) =>
    fail('features', `${file} is for ${feature}, which this build leaves out`, build),
  )
}

/** Runs the checks of the features themselves. A check that takes longer than 20 seconds has failed. */
export async function runFeatureChecks({ instances, observers: chosen }: Snapshot): Promise<Check[]> {
  // An observer that the configuration does not choose does no work, so its checks would find nothing to check.
  const isIdle = ({ observers }: Parts) => observers?.every((observer) => !chosen.includes(observer)) ?? false
  const checks = instances.flatMap(({ feature, parts }) => (parts.check && !isIdle(parts) ? [runCheck(feature.id, parts.check)] : []))
  return (await Promise.all(checks)).flat()
}

async function runCheck(id: FeatureId, check: NonNullable<Parts['check']>): Promise<Check[]> {
  try {
    using limit = signalScope([], CHECK_MS_MAX)
    return (await check(limit.signal)).map((finding) => ({ check: id, ...finding, fix: finding.fix ?? null }))
  } catch (error) {
    return [fail(id, `its check failed: ${errorText(error)}`, `see the section of ${id} in the configuration`)]
  }
}

/** The settings that decide the abilities of the main agent, in addition to its tools. */
export interface MainAgent {
  readonly policy: Pick<Policy, 'shell' | 'level'>
  readonly confines: boolean
  /** `[agent] timezone`. */
  readonly timezone: string | undefined
}

/** The level at which the policy refuses every call with effects. */
const READONLY = 'because [security.policy] level is "readonly"'

function commandsOf({ shell, level }: MainAgent['policy'], confines: boolean): string {
  if (level === 'readonly') return `runs commands that only read, ${READONLY}`
  if (shell !== 'script') return 'runs plain commands: for scripts, set [security.policy] shell = "script"'
  if (confines) return 'runs scripts in a sandbox'
  return level === 'full' ? 'runs scripts without a sandbox' : "runs plain commands, and scripts once a sandbox works: see 'sandbox'"
}

/** Says which of the things that people expect the agent does here, and what each of the others lacks. None of them is a problem. */
export function checkAbilities(
  { registry, features }: Pick<Snapshot, 'registry' | 'features'>,
  { policy, confines, timezone }: MainAgent,
): Check {
  const offers = (tool: string) => registry.offered.some(({ name }) => name === tool)
  const without = (id: CatalogueId, setting: string) =>
    features.some(({ feature, compiled }) => feature === id && compiled) ? setting : howToGet(id)
  const { labels, settings } = registry.models
  const chain = labels.map((_, at) => settings(at) ?? {})
  const isReadonly = policy.level === 'readonly'
  const lines = [
    offers('file_edit')
      ? isReadonly
        ? `reads files and edits none, ${READONLY}`
        : 'edits files'
      : `edits no files: ${without('tool-files', 'the tool file_edit is not available')}`,
    offers('shell') ? commandsOf(policy, confines) : `runs no commands: ${without('tool-shell', 'the tool shell is not available')}`,
    offers('web_fetch') ? 'reads web pages' : `reads no web pages: ${without('tool-web', 'set [tools.web] fetch = true')}`,
    offers('web_search') ? 'searches the web' : `does not search the web: ${without('tool-web', 'set [tools.web] search')}`,
    offers('memory_recall')
      ? `recalls memories${isReadonly ? ` and stores none, ${READONLY}` : ''}`
      : `recalls no memories: ${without('tool-memory', 'the tool memory_recall is not available')}`,
    readsPictures(chain) ? 'sees pictures' : 'sees no pictures: where the model can, set [provider] media = ["image"]',
    `knows the date, in the time zone ${timezone ?? `${new Intl.DateTimeFormat().resolvedOptions().timeZone} of this machine; for another one, set [agent] timezone`}`,
  ]
  return ok('abilities', lines.join('\n'))
}

/** Finds names in `[gateway] callable_tools` that no tool has. Empty when every name has one. */
export function checkCallableTools({ gateway, registry }: Pick<Snapshot, 'gateway' | 'registry'>): Check[] {
  const offered = registry.offered.map(({ name }) => name)
  const fix = 'correct callable_tools under [gateway]'
  return gateway.callable_tools.flatMap((name): Check[] => {
    if (offered.includes(name)) return []
    if (registry.tools.has(name)) return [warn('callable tools', `'${name}' is not available`, "see 'sluice features' for the reason")]
    const near = nearestNames(name, offered)
    const hint = near.length > 0 ? `; similar names: ${near.join(', ')}` : ''
    return [warn('callable tools', `there is no tool '${printableLine(name)}'${hint}`, fix)]
  })
}
