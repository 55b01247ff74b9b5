/** One feature of this build: built, registered, drained and closed. */

import type { SectionState } from '@sluice/config'
import { signalScope, untilAborted } from '@sluice/kit'
import { errorText, type Feature, type Host, type Logger, type Parts, rowOfFeature } from '@sluice/sdk'

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
export function buildInstance(feature: Feature, host: Host, section: SectionState): Instance {
  return new Instance(feature, buildParts(feature, host, section), section.state === 'configured', host.log)
}

function buildParts(feature: Feature, host: Host, section: SectionState): BuiltFeature {
  if (section.state === 'unconfigured') return { parts: {}, state: 'unconfigured', reason: section.why }
  try {
    const parts = feature.build(host, section.value)
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
