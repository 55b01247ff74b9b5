/** What boards say unasked starts procedures: the event `<alias>/<signal>` of a `peripheral` trigger. */
import type { Host } from '@sluice/sdk'

/** A board that stutters is heard this often a second, and this often at once. */
export const SIGNALS_PER_SEC_MAX = 10
export const SIGNALS_AT_ONCE_MAX = 20
/** Of one board, while the engine is slow. */
const FIRING_MAX = 16
const WARN_AGAIN_MS = 60_000

/** Of one board; takes a signal at once and never throws. */
export function createSignals(host: Host, alias: string): (signal: string, value: unknown) => void {
  let left = SIGNALS_AT_ONCE_MAX
  let atMs = host.clock.monotonicMs()
  let firing = 0
  let dropped = 0
  let warnedAtMs = Number.NEGATIVE_INFINITY

  const mayFire = (): boolean => {
    const now = host.clock.monotonicMs()
    left = Math.min(SIGNALS_AT_ONCE_MAX, left + ((now - atMs) / 1000) * SIGNALS_PER_SEC_MAX)
    atMs = now
    if (left >= 1 && firing < FIRING_MAX) {
      left--
      return true
    }
    dropped++
    if (now - warnedAtMs >= WARN_AGAIN_MS) {
      warnedAtMs = now
      host.log.warn('a board signals more often than it is heard', { device: alias, dropped })
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
      .catch((error: unknown) => host.log.warn('a signal of a board started nothing', { device: alias, signal, error }))
      .finally(() => firing--)
  }
}
