/** One feature of this build: built, registered, drained and closed. */

import type { LoadedConfig, SectionState } from '@sluice/config'
import { signalScope, untilAborted } from '@sluice/kit'
import { errorText, type Feature, type Host, type Logger, type Parts, rowOfFeature, sectionsOfFeature } from '@sluice/sdk'

/** Registration that takes longer marks the feature failed; the daemon goes on without it. */
const REGISTER_MS_MAX = 30_000

/** `starting`: registration has not ended yet. `unavailable`: this machine does not have what the feature needs. */
export type FeatureState = 'ready' | 'starting' | 'unavailable' | 'unconfigured' | 'failed' | 'left_out'

export class Instance {
  readonly feature: Feature
  /** Only commands, where the feature is unconfigured, disabled or could not be built. */
  readonly parts: Parts
  readonly isConfigured: boolean
  readonly #log: Logger
  readonly #abort = new AbortController()
  #state: FeatureState
  #reason: string | null
  #draining: Promise<void> | undefined
  #closing: Promise<void> | undefined

  constructor(feature: Feature, built: BuiltFeature, isConfigured: boolean, log: Logger) {
    this.feature = feature
    this.parts = built.parts
    this.isConfigured = isConfigured
    this.#log = log
    this.#state = built.state
    this.#reason = built.reason
  }

  state(): FeatureState {
    return this.#state
  }

  /** Why the feature is not ready; null when it is. */
  reason(): string | null {
    return this.#reason
  }

  /** Registers a feature that is `starting`. Never rejects: a feature that cannot register is failed, with the reason. */
  async register(): Promise<void> {
    if (!this.parts.register || this.#state !== 'starting') return
    using limit = signalScope([], REGISTER_MS_MAX)
    using scope = signalScope([this.#abort.signal, limit.signal])
    try {
      const tooLate = `registration took longer than ${REGISTER_MS_MAX / 1000} s`
      await untilAborted(this.parts.register(scope.signal), limit.signal, tooLate)
      this.#setState('ready', null)
    } catch (error) {
      this.#log.error('feature registration failed', { error })
      this.#setState('failed', errorText(error))
    }
  }

  /** Calls `Parts.drain`. Idempotent; never rejects. */
  drain(): Promise<void> {
    this.#draining ??= this.#quietly('feature drain failed', this.parts.drain)
    return this.#draining
  }

  /** Ends a registration that is under way, and calls `Parts.close`. Idempotent; never rejects. */
  close(): Promise<void> {
    this.#abort.abort()
    this.#closing ??= this.#quietly('feature close failed', this.parts.close)
    return this.#closing
  }

  #setState(state: FeatureState, reason: string | null): void {
    if (this.#abort.signal.aborted) return
    this.#state = state
    this.#reason = reason
  }

  async #quietly(problem: string, step: (() => Promise<void>) | undefined): Promise<void> {
    try {
      await step?.call(this.parts)
    } catch (error) {
      this.#log.error(problem, { error })
    }
  }
}

interface BuiltFeature {
  readonly parts: Parts
  readonly state: FeatureState
  readonly reason: string | null
}

/** Builds a feature. Synchronous, so that building does no I/O. A feature whose `build` throws is failed. */
export function buildInstance(feature: Feature, host: Host, config: Pick<LoadedConfig, 'of'>): Instance {
  const more = sectionsOfFeature(feature)
    .slice(1)
    .map(({ path }) => ({ path, state: config.of(feature.id, path) }))
  const sections: SectionToBuild[] = [{ state: config.of(feature.id) }, ...more]
  const isConfigured = sections.some(({ state }) => state.state === 'configured')
  return new Instance(feature, buildParts(feature, host, sections), isConfigured, host.log)
}

interface SectionToBuild {
  /** Absent for `Feature.section`. */
  readonly path?: string
  readonly state: SectionState
}

function buildParts(feature: Feature, host: Host, sections: readonly SectionToBuild[]): BuiltFeature {
  const ready = sections.flatMap(({ path, state }) => (state.state === 'unconfigured' ? [] : [{ path, value: state.value }]))
  if (ready.length === 0) {
    const reasons = sections.flatMap(({ state }) => ('why' in state ? state.why : []))
    return { parts: {}, state: 'unconfigured', reason: reasons.join('; ') }
  }
  try {
    const built = ready.map(({ path, value }) => (path === undefined ? feature.build(host, value) : feature.build(host, value, path)))
    const parts = feature.moreSections ? joinChannels(feature, built) : (built[0] ?? {})
    checkNames(feature, parts)
    if (parts.disabledReason !== undefined)
      return { parts: { commands: parts.commands ?? [] }, state: 'unconfigured', reason: parts.disabledReason }
    if (parts.register) return { parts, state: 'starting', reason: 'registration has not ended yet' }
    return { parts, state: 'ready', reason: null }
  } catch (error) {
    host.log.error('feature build failed', { error })
    return { parts: {}, state: 'failed', reason: errorText(error) }
  }
}

/** The parts that each section of a feature with several sections may bring. */
const JOINED: ReadonlySet<string> = new Set<keyof Parts>(['channels', 'disabledReason', 'missingRequirement', 'check'])

/** Joins the parts of several sections, which are channels with their checks; it is disabled if each of them is. */
function joinChannels({ id }: Feature, built: readonly Parts[]): Parts {
  const other = built.flatMap((parts) => Object.keys(parts)).find((name) => !JOINED.has(name))
  if (other !== undefined) throw new Error(`${id} has several sections and brings ${other}; such a feature can bring only channels`)
  const on = built.filter(({ disabledReason }) => disabledReason === undefined)
  if (on.length === 0) return built[0] ?? {}
  return {
    channels: on.flatMap(({ channels = [] }) => channels),
    missingRequirement: () => on.map((parts) => parts.missingRequirement?.()).find((missing) => missing !== undefined),
    check: async (signal) => (await Promise.all(on.map(async (parts) => (await parts.check?.(signal)) ?? []))).flat(),
  }
}

/**
 * Throws if a part has a name that the feature's catalogue row does not list: the row answers for the feature in builds
 * that leave it out.
 */
function checkNames(feature: Feature, parts: Parts): void {
  const { id } = feature
  const row = rowOfFeature(feature)
  if (!row) return
  const check = (kind: string, names: readonly string[] = [], listed: readonly string[] = []) => {
    const unlisted = names.find((name) => !listed.includes(name))
    if (unlisted !== undefined) throw new Error(`${id} brings the ${kind} '${unlisted}', which its catalogue row does not name`)
  }
  const toolNames = parts.tools?.map(({ name }) => name)
  const commandNames = parts.commands?.map(({ name }) => name)
  const routeNames = [
    ...(parts.routes ?? []).map(({ method, path }) => `${method} ${path}`),
    ...(parts.sockets ?? []).map(({ path }) => `GET ${path}`),
  ]
  const providerKinds = parts.providers?.flatMap(({ kinds }) => kinds)
  if (!row.namesItsTools) check('tool', toolNames, row.tools)
  check('command', commandNames, row.commands)
  check('route', routeNames, row.routes)
  check('provider kind', providerKinds, row.kinds)
}
