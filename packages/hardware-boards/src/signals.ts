/** Starts procedures by the signals of boards: each signal is the event `<alias>/<signal>` for `peripheral` triggers. */
import type { Host, Sops } from '@sluice/sdk'
import type { Signals } from './transports/board-line.ts'

/** The limits for each board: the signals per second on average, and in a burst. */
export const SIGNALS_PER_SEC_MAX = 10
export const SIGNALS_BURST_MAX = 20
/** The most events of one board that wait for a slow procedure engine. */
const FIRING_MAX = 16
const WARN_INTERVAL_MS = 60_000
/** How often the procedure engine is looked up until it is ready. */
const ENGINE_POLL_MS = 1000

/** Returns a function that takes the signals of one board. It returns at once and never throws. */
export function createSignals(host: Host, alias: string): (signal: string, value: unknown) => void {
  let left = SIGNALS_BURST_MAX
  let atMs = host.clock.monotonicMs()
  let firing = 0
  let dropped = 0
  let warnedAtMs = Number.NEGATIVE_INFINITY

  const mayFire = (): boolean => {
    const now = host.clock.monotonicMs()
    left = Math.min(SIGNALS_BURST_MAX, left + ((now - atMs) / 1000) * SIGNALS_PER_SEC_MAX)
    atMs = now
    if (left >= 1 && firing < FIRING_MAX) {
      left--
      return true
    }
    dropped++
    if (now - warnedAtMs >= WARN_INTERVAL_MS) {
      warnedAtMs = now
      host.log.warn('board sends too many signals; some are dropped', { device: alias, dropped })
    }
    return false
  }

  return (signal, value) => {
    const topic = `${alias}/${signal}`
    const sops = host.service('sops')
    if (!sops?.matches('peripheral', topic) || !mayFire()) return
    firing++
    const payload = value === undefined || value === null ? null : JSON.stringify(value)
    sops
      .fire({ source: 'peripheral', topic, payload, by: `board:${alias}`, atMs: host.clock.nowMs() })
      .catch((error: unknown) => host.log.warn('board signal not delivered to procedures', { device: alias, signal, error }))
      .finally(() => firing--)
  }
}

/** The wanted signals by alias. */
export type WantedSignals = ReadonlyMap<string, Signals>

/** The boards whose signals can be listened to. */
export interface SignalSource {
  /** Listens to exactly these signals, by the alias of the board. */
  listenTo(signals: WantedSignals): void
}

/**
 * Keeps `registry` listening to exactly the signals that loaded procedures wait for. Resolves once the procedure engine is
 * ready or `signal` aborts.
 */
export async function listenToTriggers(host: Host, registry: SignalSource, signal: AbortSignal): Promise<void> {
  const sops = await engineOf(host, signal)
  if (!sops) return
  const update = (): void => registry.listenTo(signalsIn(sops.topics('peripheral')))
  const unsubscribe = sops.onReload(update)
  signal.addEventListener('abort', unsubscribe, { once: true })
  update()
}

/** Returns the signals by alias. A topic is `board_b0/button`, and an alias has no slash. */
function signalsIn(topics: readonly string[]): ReadonlyMap<string, ReadonlySet<string>> {
  const signals = new Map<string, Set<string>>()
  for (const topic of topics) {
    const end = topic.indexOf('/')
    const alias = topic.slice(0, end)
    signals.set(alias, (signals.get(alias) ?? new Set()).add(topic.slice(end + 1)))
  }
  return signals
}

async function engineOf(host: Host, signal: AbortSignal): Promise<Sops | undefined> {
  while (!signal.aborted) {
    const sops = host.service('sops')
    if (sops) return sops
    await host.clock.sleep(ENGINE_POLL_MS, signal)
  }
  return undefined
}
