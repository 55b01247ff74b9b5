/** One feature of this build at work: constructed, registered, closed (§1 item 3, phases 1, 2 and 4). */

import type { SectionState } from '@sluice/config'
import { signalScope, untilAborted } from '@sluice/kit'
import { errorText, type Feature, type Host, type Parts, rowOf } from '@sluice/sdk'

/** Registration that takes longer marks the feature failed; the daemon goes on. */
const REGISTER_MS_MAX = 30_000

/** `starting`: registration has not ended yet. `unavailable`: this machine lacks something that the feature needs. */
export type FeatureState = 'ready' | 'starting' | 'unavailable' | 'unconfigured' | 'failed' | 'left_out'

export interface Instance {
  readonly feature: Feature
  readonly parts: Parts
  readonly configured: boolean
  readonly state: () => FeatureState
  /** Why it is not ready; null when it is. */
  readonly reason: () => string | null
  /** Phase 2. Never rejects: a feature that cannot register is failed, and says why. */
  register(): Promise<void>
  /** As `Parts.drain`. Idempotent, never rejects. */
  drain(): Promise<void>
  /** Phase 4. Idempotent, never rejects. */
  close(): Promise<void>
}

/** Phase 1: synchronous, so no I/O fits in. A feature whose construction throws is failed. */
export function construct(feature: Feature, host: Host, section: SectionState): Instance {
  const configured = section.state === 'configured'
  if (section.state === 'unconfigured') return inert(feature, false, 'unconfigured', section.why)
  let parts: Parts
  try {
    parts = feature.build(host, section.value)
    checkNames(feature, parts)
  } catch (error) {
    host.log.error('the feature could not be built', { error })
    return inert(feature, configured, 'failed', errorText(error))
  }
  if (parts.off !== undefined) return inert(feature, configured, 'unconfigured', parts.off, parts.commands)
  const abort = new AbortController()
  let state: FeatureState = parts.register ? 'starting' : 'ready'
  let reason: string | null = parts.register ? 'registration has not ended yet' : null
  let closing: Promise<void> | undefined
  let draining: Promise<void> | undefined
  const settle = (next: FeatureState, why: string | null) => {
    if (abort.signal.aborted) return
    state = next
    reason = why
  }
  const close = async () => {
    abort.abort()
    try {
      await parts.close?.()
    } catch (error) {
      host.log.error('the feature did not close cleanly', { error })
    }
  }
  const drain = async () => {
    try {
      await parts.drain?.()
    } catch (error) {
      host.log.error('the feature did not drain cleanly', { error })
    }
  }
  return {
    feature,
    parts,
    configured,
    state: () => state,
    reason: () => reason,
    async register() {
      if (!parts.register || state !== 'starting') return
      using late = signalScope([], REGISTER_MS_MAX)
      using either = signalScope([abort.signal, late.signal])
      try {
        await untilAborted(parts.register(either.signal), late.signal, `registration took longer than ${REGISTER_MS_MAX / 1000} s`)
        settle('ready', null)
      } catch (error) {
        host.log.error('the feature could not be registered', { error })
        settle('failed', errorText(error))
      }
    },
    drain: () => (draining ??= drain()),
    close: () => (closing ??= close()),
  }
}

const inert = (feature: Feature, configured: boolean, state: FeatureState, reason: string, commands: Parts['commands'] = []): Instance => ({
  feature,
  parts: { commands },
  configured,
  state: () => state,
  reason: () => reason,
  register: async () => {},
  drain: async () => {},
  close: async () => {},
})

/** What a part is called also stands in the catalogue row: it is what answers when the feature is left out. */
function checkNames({ id }: Feature, parts: Parts): void {
  const row = rowOf(id)
  if (!row) return
  const check = (what: string, names: readonly string[] | undefined, known: readonly string[] | undefined) => {
    for (const name of names ?? []) {
      if (!known?.includes(name)) throw new Error(`${id} brings the ${what} '${name}', which its catalogue row does not name`)
    }
  }
  if (!row.namesItsTools) {
    check(
      'tool',
      parts.tools?.map(({ name }) => name),
      row.tools,
    )
  }
  check(
    'command',
    parts.commands?.map(({ name }) => name),
    row.commands,
  )
  check(
    'route',
    parts.routes?.map(({ method, path }) => `${method} ${path}`),
    row.routes,
  )
  check(
    'provider kind',
    parts.providers?.flatMap(({ kinds }) => kinds),
    row.kinds,
  )
}
