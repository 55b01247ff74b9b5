/** The health of this daemon, as `GET /health` and `GET /ready` report it. Everything it reports is in memory. */

import { healthOf } from '@sluice/delivery'
import type { Clock, Store, Vitals } from '@sluice/sdk'
import type { NodeFinding } from './cluster/compare-nodes.ts'
import { wrongClock } from './cluster/wrong-clock.ts'
import type { EventBus } from './events/event-bus.ts'
import type { Snapshot } from './features/snapshot.ts'
import type { Health } from './health-answer.ts'
import { noSandbox, REFUSING } from './sandbox/no-sandbox.ts'
import type { SandboxChoice } from './sandbox/select-sandbox.ts'

export { type Health, healthSchema, readySchema } from './health-answer.ts'

/** A setting of `[gateway]` because of which a forwarding header was ignored. */
export type ForwardingSetting = 'trust_forwarded_headers' | 'trusted_proxies'

export interface HealthSources {
  readonly clock: Pick<Clock, 'monotonicMs' | 'nowMs'>
  readonly store: Pick<Store, 'health' | 'probe'>
  readonly bus: Pick<EventBus, 'observe'>
  readonly snapshot: () => Pick<Snapshot, 'channels' | 'links' | 'gateway'>
  /** The shard leases under which this process may act now, and those that it wants. */
  readonly leases: () => { readonly held: number; readonly wanted: number }
  /** The name of this node of a cluster; null, as when absent, without one. */
  readonly node?: string | null
  /** The last measurement of how far the clock of this node of a cluster is ahead of that of the database; null before the first one. */
  readonly clockOffsetMs?: () => number | null
  /** The choice in force; undefined before the first one is made. */
  readonly sandbox: () => SandboxChoice | undefined
}

export interface Reasons {
  readonly provider?: { readonly error: string; readonly sinceMs: number } | undefined
  readonly config?: { readonly error: string; readonly sinceMs: number } | undefined
  readonly jumped?: { readonly ms: number; readonly sinceMs: number } | undefined
  /** What differs between the nodes of a cluster. */
  readonly nodes?: readonly NodeFinding[]
}

/** The beginning of every warning about a proxy. */
export const FORWARDING_IGNORED = 'a forwarding header was ignored'

/** A clock that was set is worth a look for this long. */
const CLOCK_MS = 3_600_000
/** A commit this recent shows that the disk takes writes. */
const COMMIT_AGE_MS_MAX = 5000
/** A full disk takes some small writes in between. The daemon is ready once no probe was refused for this long. */
const SETTLED_MS = 1000
/** After this long without a commit, `look` starts a probe, so that a full disk is noticed before a message arrives. */
const IDLE_MS = 30_000
/** A turn that fails with one of these codes got no answer from the provider. Other codes name faults of the store or limits. */
const PROVIDER_FAULTS: ReadonlySet<string> = new Set(['upstream', 'upstream_timeout'])

export const createHealthWatch = (sources: HealthSources): HealthWatch => new HealthWatch(sources)

export class HealthWatch {
  /** Settings because of which a forwarding header was ignored; the HTTP side adds to it. */
  readonly ignoredForwarding = new Set<ForwardingSetting>()
  readonly #sources: HealthSources
  #phase: 'starting' | 'serving' | 'draining' = 'starting'
  #provider: Health['provider']['state'] = 'unknown'
  /** The reasons of faults, which `look` leaves out because it needs no credential. */
  #reasons: Reasons = {}
  /** When the clock was set last, by the monotonic clock. */
  #jumpedMs = Number.NEGATIVE_INFINITY
  /** The channels that do not work. */
  readonly #channels = new Map<string, { readonly sinceMs: number; readonly detail: string | null }>()
  #isConfigValid = true
  #probing: Promise<string | null> | undefined
  #probedMs = Number.NEGATIVE_INFINITY
  /** When a probe was refused last. */
  #refusedMs = Number.NEGATIVE_INFINITY

  constructor(sources: HealthSources) {
    this.#sources = sources
    sources.bus.observe((event) => {
      const sinceMs = sources.clock.nowMs()
      if (event.type === 'turn_completed') {
        this.#provider = 'ok'
        this.#reasons = { ...this.#reasons, provider: undefined }
      } else if (event.type === 'turn_failed' && PROVIDER_FAULTS.has(event.code)) {
        this.#provider = 'failing'
        this.#reasons = { ...this.#reasons, provider: { sinceMs, ...this.#reasons.provider, error: event.error } }
      } else if (event.type === 'config_rejected') this.#reasons = { ...this.#reasons, config: { error: event.error, sinceMs } }
      else if (event.type === 'clock_jumped') {
        this.#reasons = { ...this.#reasons, jumped: { ms: event.ms, sinceMs } }
        this.#jumpedMs = sources.clock.monotonicMs()
      } else if (event.type === 'channel_health') {
        if (event.state === 'ok') this.#channels.delete(event.channel)
        else this.#channels.set(event.channel, { sinceMs, ...this.#channels.get(event.channel), detail: event.detail })
      }
    })
  }

  /** Reports that the daemon serves requests from now on. */
  started(): void {
    this.#phase = 'serving'
  }

  /** Reports that the daemon is stopping from now on. */
  draining(): void {
    this.#phase = 'draining'
  }

  /** Reports whether the configuration file was valid when it was read last. */
  configRead(isValid: boolean): void {
    this.#isConfigValid = isValid
    if (isValid) this.#reasons = { ...this.#reasons, config: undefined }
  }

  /** Reports what differs between the nodes of the cluster, as of the last comparison. */
  nodesCompared(nodes: readonly NodeFinding[]): void {
    this.#reasons = { ...this.#reasons, nodes }
  }

  /** Why the provider and the configuration fail, and since when; what differs between nodes; and the last time that the clock was set. For operators only. */
  reasons(): Reasons {
    return this.#reasons
  }

  /** Whether the clock was set, or the machine slept, within the last hour. */
  hasJumped(): boolean {
    return this.#sources.clock.monotonicMs() - this.#jumpedMs < CLOCK_MS
  }

  /** Since when a channel does not work; undefined while it does. */
  channelSinceMs(channel: string): number | undefined {
    return this.#channels.get(channel)?.sinceMs
  }

  /** The channels that were reported as down and are not among the configured ones: messages or replies wait for them. */
  absentChannels(): readonly { readonly name: string; readonly sinceMs: number; readonly detail: string }[] {
    const present = new Set(this.#sources.snapshot().channels.map(({ name }) => name))
    return [...this.#channels].flatMap(([name, { sinceMs, detail }]) =>
      detail === null || present.has(name) ? [] : [{ name, sinceMs, detail }],
    )
  }

  /** Cheap: reads no file and waits for nothing. On an idle daemon it starts a probe of the store, at most twice a minute. */
  look = (): Health => {
    const { channels, links, gateway } = this.#sources.snapshot()
    const { fault, lastCommitMs } = this.#sources.store.health()
    this.#probeIfIdle(lastCommitMs, fault)
    const connections = {
      channels: channels.map((channel) => ({ name: channel.name, state: healthOf(channel).state })),
      links: links().map(({ name, state }) => ({ name, state })),
    }
    const isDown = [...connections.channels, ...connections.links].some(({ state }) => state === 'down' || state === 'degraded')
    const leases = this.#sources.leases()
    const isDisowned = this.#phase === 'serving' && leases.held < leases.wanted
    const isDegraded = fault !== null || isDisowned || !this.#isConfigValid || this.#provider === 'failing' || isDown
    const wrong = wrongClock('this machine', this.#sources.clockOffsetMs?.() ?? null)
    return {
      status: isDegraded ? 'degraded' : 'ok',
      require_pairing: gateway.require_pairing,
      store: { state: fault === null ? 'ok' : 'failing', reason: fault },
      config: { state: this.#isConfigValid ? 'ok' : 'rejected' },
      provider: { state: this.#provider },
      leases,
      node: this.#sources.node ?? null,
      ...connections,
      warnings: [
        ...[...this.ignoredForwarding].map((setting) => `${FORWARDING_IGNORED}: see [gateway] ${setting}`),
        ...sandboxWarnings(this.#sources.sandbox()),
        ...(wrong === undefined ? [] : [wrong]),
        ...(this.hasJumped() ? ['the clock of the machine jumped within the last hour: see sluice doctor'] : []),
      ],
    }
  }

  /** Why this daemon should get no requests; null when it is ready. Writes a probe if nothing was committed lately. */
  async notReady(): Promise<string | null> {
    if (this.#phase === 'starting') return 'The daemon is starting'
    if (this.#phase === 'draining') return 'The daemon is stopping'
    const { clock, store } = this.#sources
    const { lastCommitMs, fault } = store.health()
    const isProven = fault === null && lastCommitMs !== null && clock.monotonicMs() - lastCommitMs <= COMMIT_AGE_MS_MAX
    if (isProven && !this.#isUnsettled()) return null
    return (await this.#probeOnce()) ?? (this.#isUnsettled() ? 'The store refused to keep data within the last second' : null)
  }

  #isUnsettled(): boolean {
    return this.#sources.clock.monotonicMs() - this.#refusedMs < SETTLED_MS
  }

  #probeIfIdle(lastCommitMs: number | null, fault: string | null): void {
    // While there is a fault, other writes may be committed although no message can be kept.
    const provenMs = fault === null ? (lastCommitMs ?? Number.NEGATIVE_INFINITY) : Number.NEGATIVE_INFINITY
    const lastMs = Math.max(provenMs, this.#probedMs)
    if (this.#phase === 'serving' && this.#sources.clock.monotonicMs() - lastMs > IDLE_MS) void this.#probeOnce()
  }

  /** Callers at the same time share one probe. */
  #probeOnce(): Promise<string | null> {
    this.#probing ??= this.#probe().finally(() => {
      this.#probing = undefined
    })
    return this.#probing
  }

  /** Resolves to the reason why the store does not commit, or to null if it does. */
  async #probe(): Promise<string | null> {
    const { clock, store } = this.#sources
    this.#probedMs = clock.monotonicMs()
    try {
      await store.probe()
      return null
    } catch (error) {
      this.#refusedMs = clock.monotonicMs()
      return error instanceof Error ? error.message : 'The store cannot keep this now'
    }
  }
}

/** `/health` needs no credential, so the reasons are left to `sluice doctor`. */
function sandboxWarnings(choice: SandboxChoice | undefined): string[] {
  if (!choice) return []
  switch (sandboxState(choice)) {
    case 'unconfined':
      return ['commands run without a sandbox: see sluice doctor']
    case 'refusing':
      return ['commands are refused, because no sandbox works: see sluice doctor']
    case 'fallback':
      return ['commands run in another sandbox than the configuration names: see sluice doctor']
    case 'confined':
      return []
  }
}

export function sandboxState({ sandbox, warning }: SandboxChoice): NonNullable<Vitals['sandbox']>['state'] {
  if (sandbox.name === noSandbox.name) return 'unconfined'
  if (sandbox.name === REFUSING) return 'refusing'
  return warning === undefined ? 'confined' : 'fallback'
}
