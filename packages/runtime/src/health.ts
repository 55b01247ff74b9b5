/** How this daemon is: what `GET /health` and `GET /ready` say, put together from what is in memory. */

import { healthOf } from '@sluice/delivery'
import type { Clock, KeyValue, StoreHealth } from '@sluice/sdk'
import * as v from 'valibot'
import type { IgnoredForwarding } from './client-peers.ts'
import type { EventBus } from './events/event-bus.ts'
import type { Snapshot } from './features/snapshot.ts'
import { noSandbox, REFUSING } from './sandbox/no-sandbox.ts'
import type { SandboxChoice } from './sandbox/select-sandbox.ts'

const linkSchema = v.object({ name: v.string(), state: v.picklist(['ok', 'connecting', 'down']) })

export const healthSchema = v.object({
  status: v.pipe(v.picklist(['ok', 'degraded']), v.description('`degraded`: one of the details below is not well')),
  require_pairing: v.boolean(),
  store: v.object({
    state: v.picklist(['ok', 'failing']),
    reason: v.pipe(v.nullable(v.string()), v.description('Such as `database or disk is full`')),
  }),
  config: v.object({
    state: v.pipe(v.picklist(['ok', 'rejected']), v.description('`rejected`: the file is not valid, so the one before it is in force')),
  }),
  provider: v.object({ state: v.pipe(v.picklist(['ok', 'failing', 'unknown']), v.description('As the last turn found it')) }),
  channels: v.array(linkSchema),
  links: v.pipe(v.array(linkSchema), v.description('Other connections that features keep open, such as to an MQTT broker')),
  warnings: v.pipe(
    v.array(v.string()),
    v.description('Such as settings that do not fit the requests that come in, or commands that run without a sandbox'),
  ),
})

export const readySchema = v.object({
  ready: v.boolean(),
  reason: v.nullable(v.string()),
  ...healthSchema.entries,
})

export type Health = v.InferOutput<typeof healthSchema>

export interface HealthWatch {
  /** Cheap: reads no file and waits for nothing. On an idle daemon it starts a probe of the store, at most twice a minute. */
  look(): Health
  /** Why this daemon should be sent no requests; null: it is ready. Writes a probe if nothing was committed lately. */
  notReady(): Promise<string | null>
  /** From now on requests are served. */
  started(): void
  /** From now on the daemon is on its way to its end. */
  draining(): void
  /** Whether the configuration file was valid when it was read last. */
  configRead(isValid: boolean): void
  /** Forwarding headers that were ignored; whoever ignores one adds to it. */
  readonly ignoredForwarding: Set<IgnoredForwarding>
}

export interface HealthWatchOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly store: { health(): StoreHealth; keyValue(owner: string): Pick<KeyValue, 'set'> }
  readonly bus: Pick<EventBus, 'subscribe'>
  readonly snapshot: () => Pick<Snapshot, 'channels' | 'links' | 'gateway'>
  /** The choice in force; undefined before the first one is made. */
  readonly sandbox: () => SandboxChoice | undefined
}

/** Begins the warnings that are about a proxy. */
export const FORWARDING_IGNORED = 'a forwarding header was ignored'

/** A commit this recent shows that the disk takes writes. */
const COMMIT_AGE_MS_MAX = 5000
/** After this long without a commit, looking starts a probe, so that a full disk is noticed before a message comes. */
const IDLE_MS = 30_000
/** Turns that failed for these reasons got no answer from the provider. Other codes name faults of the store, or the operator's limits. */
const PROVIDER_FAULTS: ReadonlySet<string> = new Set(['upstream', 'upstream_timeout'])

export function createHealthWatch({ clock, store, bus, snapshot, sandbox }: HealthWatchOptions): HealthWatch {
  let provider: Health['provider']['state'] = 'unknown'
  let phase: 'starting' | 'serving' | 'draining' = 'starting'
  let isConfigValid = true
  let probing: Promise<string | null> | undefined
  const ignoredForwarding = new Set<IgnoredForwarding>()
  bus.subscribe(({ envelope }) => {
    if (envelope.type === 'turn_completed') provider = 'ok'
    else if (envelope.type === 'turn_failed' && PROVIDER_FAULTS.has(envelope.code)) provider = 'failing'
  })

  let probedMs = Number.NEGATIVE_INFINITY

  const probe = async (): Promise<string | null> => {
    probedMs = clock.monotonicMs()
    try {
      await store.keyValue('gateway:health').set('probe', clock.monotonicMs())
      return null
    } catch (error) {
      return error instanceof Error ? error.message : 'The store cannot keep this now'
    }
  }

  /** One probe for however many ask. */
  const probeOnce = (): Promise<string | null> => {
    probing ??= probe().finally(() => {
      probing = undefined
    })
    return probing
  }

  const probeIfIdle = (lastCommitMs: number | null): void => {
    const lastMs = Math.max(lastCommitMs ?? Number.NEGATIVE_INFINITY, probedMs)
    if (phase === 'serving' && clock.monotonicMs() - lastMs > IDLE_MS) void probeOnce()
  }

  return {
    ignoredForwarding,
    configRead(isValid) {
      isConfigValid = isValid
    },
    started() {
      phase = 'serving'
    },
    draining() {
      phase = 'draining'
    },
    look() {
      const { channels, links, gateway } = snapshot()
      const { fault, lastCommitMs } = store.health()
      probeIfIdle(lastCommitMs)
      const shown = {
        channels: channels.map((channel) => ({ name: channel.name, state: healthOf(channel).state })),
        links: links().map(({ name, state }) => ({ name, state })),
      }
      const isDown = [...shown.channels, ...shown.links].some(({ state }) => state === 'down')
      return {
        status: fault !== null || !isConfigValid || provider === 'failing' || isDown ? 'degraded' : 'ok',
        require_pairing: gateway.require_pairing,
        store: { state: fault === null ? 'ok' : 'failing', reason: fault },
        config: { state: isConfigValid ? 'ok' : 'rejected' },
        provider: { state: provider },
        ...shown,
        warnings: [...[...ignoredForwarding].map((why) => `${FORWARDING_IGNORED}: see [gateway] ${why}`), ...sandboxWarnings(sandbox())],
      }
    },
    async notReady() {
      if (phase === 'starting') return 'The daemon is starting'
      if (phase === 'draining') return 'The daemon is stopping'
      const { lastCommitMs, fault } = store.health()
      if (fault === null && lastCommitMs !== null && clock.monotonicMs() - lastCommitMs <= COMMIT_AGE_MS_MAX) return null
      return probeOnce()
    },
  }
}

/** `/health` is open to everybody, so the reasons are left to `sluice doctor`. */
function sandboxWarnings(choice: SandboxChoice | undefined): string[] {
  if (!choice) return []
  const { name } = choice.sandbox
  if (name === noSandbox.name) return ['commands run without a sandbox: see sluice doctor']
  if (name === REFUSING) return ['commands are refused, because no sandbox works: see sluice doctor']
  return choice.warning === undefined ? [] : ['commands run in another sandbox than the configuration names: see sluice doctor']
}
