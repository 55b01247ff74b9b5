/** The engine as the trigger sees it: keeps what was fired, knows an event again by its key, and fails where a test says so. */
import type { SopEvent, Sops } from '@sluice/sdk'
import { covers } from './covers.ts'

export interface FakeSops extends Pick<Sops, 'matches' | 'fire' | 'topics' | 'onReload'> {
  /** Every call of `fire`, failed ones and repeats included. */
  readonly fired: readonly SopEvent[]
  /** What was kept, each event once. */
  readonly kept: readonly SopEvent[]
  readonly payloads: readonly (string | null)[]
  /** Awaited before an event is kept; it is not where this rejects. */
  before: (event: SopEvent) => Promise<void> | void
  /** Awaited after it is kept, and before `fire` resolves. */
  after: (event: SopEvent) => Promise<void> | void
  reload(topics: readonly string[]): void
}

export function fakeSops(initial: readonly string[]): FakeSops {
  const fired: SopEvent[] = []
  const kept = new Map<string | undefined, SopEvent>()
  const callbacks = new Set<() => void>()
  let filters = initial
  const sops: FakeSops = {
    fired,
    get kept() {
      return [...kept.values()]
    },
    get payloads() {
      return sops.kept.map(({ payload }) => payload)
    },
    before: () => undefined,
    after: () => undefined,
    topics: () => filters,
    matches: (_source, topic) => filters.some((filter) => covers(filter, topic)),
    async fire(event) {
      fired.push(event)
      await sops.before(event)
      const isNew = !kept.has(event.key)
      if (isNew) kept.set(event.key, event)
      await sops.after(event)
      return [{ sop: 'lamp', status: 'started', runId: 'r1' }]
    },
    onReload(callback) {
      callbacks.add(callback)
      return () => void callbacks.delete(callback)
    },
    reload(topics) {
      filters = topics
      for (const callback of callbacks) callback()
    },
  }
  return sops
}
