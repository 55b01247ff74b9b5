/** Test support: a procedure engine that stores each event key once and fails when a test asks for it. */
import type { SopEvent } from '@sluice/sdk'
import type { Procedures } from '../message-receiver.ts'
import { covers } from './covers.ts'

export interface FakeSops extends Procedures {
  /** The argument of every call of `fire`, failed and repeated ones included. */
  readonly fired: readonly SopEvent[]
  /** The stored events, each once. */
  readonly stored: readonly SopEvent[]
  readonly payloads: readonly (string | null)[]
  /** Awaited before an event is stored. A rejection makes `fire` fail. */
  before: (event: SopEvent) => Promise<void> | void
  /** Awaited after an event is stored and before `fire` resolves. */
  after: (event: SopEvent) => Promise<void> | void
  reload(topics: readonly string[]): void
}

export function fakeSops(initial: readonly string[]): FakeSops {
  const fired: SopEvent[] = []
  const stored = new Map<string | undefined, SopEvent>()
  const callbacks = new Set<() => void>()
  let filters = initial
  const sops: FakeSops = {
    fired,
    get stored() {
      return [...stored.values()]
    },
    get payloads() {
      return sops.stored.map(({ payload }) => payload)
    },
    before: () => undefined,
    after: () => undefined,
    topics: () => filters,
    matches: (_source, topic) => filters.some((filter) => covers(filter, topic)),
    async fire(event) {
      fired.push(event)
      await sops.before(event)
      if (!stored.has(event.key)) stored.set(event.key, event)
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
