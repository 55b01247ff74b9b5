import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Claim, Store } from '@sluice/sdk'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { failedTurn, queuedTurn, turnEnd } from '@sluice/testkit/store-rules/samples'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { openTestStore } from '../testing/test-store.ts'

const LIMITS = { ttlMs: 4, keysMax: 3 }
const folder = mkdtempSync(join(tmpdir(), 'key-table-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** A turn as it is stored. */
interface Row {
  readonly turn: string
  readonly key: string
  state: 'queued' | 'done' | 'failed'
  endedAtMs: number
}

/** A second implementation of the rules, written for clarity: plain lists, oldest first. */
class Model {
  inFlight: { readonly key: string; queued: boolean }[] = []
  done: { readonly key: string; readonly endedAtMs: number }[] = []
  /** The stored turns, in the order of their creation. */
  rows: Row[] = []
  /** The turn for which each key was last claimed. */
  turns = new Map<string, string>()
  turnCount = 0

  claim(key: string, nowMs: number): Claim {
    if (this.isInFlight(key)) return 'in_flight'
    const known = this.done.find((entry) => entry.key === key)
    if (known && nowMs - known.endedAtMs < LIMITS.ttlMs) return 'done'
    this.done = this.done.filter((entry) => entry.key !== key)
    this.makeRoom()
    this.inFlight.push({ key, queued: false })
    this.turns.set(key, `t${this.turnCount++}`)
    return 'claimed'
  }

  release(key: string): void {
    this.inFlight = this.inFlight.filter((entry) => entry.key !== key || entry.queued)
  }

  queue(key: string): void {
    for (const entry of this.inFlight) if (entry.key === key) entry.queued = true
    this.rows.push({ turn: this.turnOf(key), key, state: 'queued', endedAtMs: 0 })
  }

  finish(key: string, state: 'done' | 'failed', endedAtMs: number): void {
    this.inFlight = this.inFlight.filter((entry) => entry.key !== key)
    if (state === 'done') this.done.push({ key, endedAtMs })
    const row = this.rows.find(({ turn }) => turn === this.turnOf(key))
    if (row) Object.assign(row, { state, endedAtMs })
    else this.rows.push({ turn: this.turnOf(key), key, state, endedAtMs })
  }

  /** Simulates a restart: memory is lost, the rows stay. */
  restart(nowMs: number): void {
    const fresh = this.rows.filter(({ state, endedAtMs }) => state === 'done' && nowMs - endedAtMs < LIMITS.ttlMs)
    const newest = fresh.sort((a, b) => a.endedAtMs - b.endedAtMs).slice(-LIMITS.keysMax)
    this.done = newest.filter(({ key }, at) => newest.findLastIndex((entry) => entry.key === key) === at)
    this.inFlight = []
    for (const { key, turn } of this.rows.filter(({ state }) => state === 'queued').slice(-LIMITS.keysMax)) {
      this.turns.set(key, turn)
      this.done = this.done.filter((entry) => entry.key !== key)
      if (this.isInFlight(key)) continue
      this.makeRoom()
      this.inFlight.push({ key, queued: true })
    }
  }

  makeRoom(): void {
    if (this.inFlight.length + this.done.length < LIMITS.keysMax) return
    if (this.done.length > 0) this.done.shift()
    else this.inFlight.shift()
  }

  isInFlight(key: string): boolean {
    return this.inFlight.some((entry) => entry.key === key)
  }

  turnOf(key: string): string {
    return this.turns.get(key) ?? ''
  }
}

interface Real {
  store: Store
  readonly file: string
  readonly clock: TestClock
}

const scoped = (key: string) => ({ scope: 'caller /webhook', key })

class Claiming implements fc.AsyncCommand<Model, Real> {
  readonly key: string
  constructor(key: string) {
    this.key = key
  }
  check = () => true
  async run(model: Model, real: Real): Promise<void> {
    const claim = await real.store.idempotency.claim(scoped(this.key), LIMITS)
    expect(claim).toBe(model.claim(this.key, real.clock.nowMs()))
  }
  toString = () => `claim(${this.key})`
}

class Releasing implements fc.AsyncCommand<Model, Real> {
  readonly key: string
  constructor(key: string) {
    this.key = key
  }
  check = () => true
  async run(model: Model, real: Real): Promise<void> {
    await real.store.idempotency.release(scoped(this.key))
    model.release(this.key)
  }
  toString = () => `release(${this.key})`
}

class Queueing implements fc.AsyncCommand<Model, Real> {
  readonly key: string
  constructor(key: string) {
    this.key = key
  }
  /** The store refuses a second turn while an unfinished one holds the key, also when the table has dropped the key for lack of room. */
  check = (model: Model) =>
    model.inFlight.some(({ key, queued }) => key === this.key && !queued) &&
    !model.rows.some(({ key, state }) => key === this.key && state === 'queued')
  async run(model: Model, real: Real): Promise<void> {
    await real.clock.advance(1) // the order of two turns in one millisecond is undefined
    const createdAtMs = real.clock.nowMs()
    await real.store.turns.enqueue(queuedTurn(model.turnOf(this.key), { createdAtMs, idempotency: scoped(this.key) }))
    model.queue(this.key)
  }
  toString = () => `enqueue(${this.key})`
}

class Finishing implements fc.AsyncCommand<Model, Real> {
  readonly key: string
  readonly status: 'done' | 'failed'
  constructor(key: string, status: 'done' | 'failed') {
    this.key = key
    this.status = status
  }
  /** As for `Queueing`: another turn that is unfinished may still hold the key. */
  check = (model: Model) =>
    model.isInFlight(this.key) &&
    !model.rows.some(({ key, state, turn }) => key === this.key && state === 'queued' && turn !== model.turnOf(key))
  async run(model: Model, { store, clock }: Real): Promise<void> {
    const end = this.status === 'done' ? turnEnd : failedTurn
    await clock.advance(1)
    const nowMs = clock.nowMs()
    await store.turns.finish(end(model.turnOf(this.key), { createdAtMs: nowMs, endedAtMs: nowMs, idempotency: scoped(this.key) }))
    model.finish(this.key, this.status, clock.nowMs())
  }
  toString = () => `finish(${this.key}, ${this.status})`
}

class Waiting implements fc.AsyncCommand<Model, Real> {
  readonly ms: number
  constructor(ms: number) {
    this.ms = ms
  }
  check = () => true
  run = (_model: Model, real: Real) => real.clock.advance(this.ms)
  toString = () => `wait(${this.ms})`
}

class Restarting implements fc.AsyncCommand<Model, Real> {
  check = () => true
  async run(model: Model, real: Real): Promise<void> {
    await real.store.close()
    real.store = openTestStore({ file: real.file, clock: real.clock, log: testHost().log })
    // The first claim reads the disk. This one is released, so that only the room it took has an effect.
    await real.store.idempotency.claim(scoped('first'), LIMITS)
    await real.store.idempotency.release(scoped('first'))
    model.restart(real.clock.nowMs())
    model.makeRoom()
  }
  toString = () => 'restart'
}

test('idempotency keys follow the model in any sequence of events', { timeout: 180_000 }, async () => {
  const key = fc.constantFrom('a', 'b', 'c', 'd')
  const commands = fc.commands(
    [
      key.map((name) => new Claiming(name)),
      key.map((name) => new Claiming(name)),
      key.map((name) => new Releasing(name)),
      key.map((name) => new Queueing(name)),
      key.map((name) => new Finishing(name, 'done')),
      key.map((name) => new Finishing(name, 'done')),
      key.map((name) => new Finishing(name, 'failed')),
      fc.integer({ min: 1, max: 4 }).map((ms) => new Waiting(ms)),
      fc.constant(new Restarting()),
    ],
    { maxCommands: 100, size: 'max' },
  )
  let runs = 0
  await fc.assert(
    fc.asyncProperty(commands, async (sequence) => {
      const file = join(folder, `${runs++}.db`)
      const clock = testClock()
      const real: Real = { store: openTestStore({ file, clock, log: testHost().log }), file, clock }
      try {
        await fc.asyncModelRun(() => ({ model: new Model(), real }), sequence)
      } finally {
        await real.store.close()
      }
    }),
    { numRuns: 50 },
  )
})
