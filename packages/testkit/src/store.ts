/** The conformance suite of the `Store` port: every backend keeps the same rules. */
import type { Clock, Store } from '@sluice/sdk'
import { afterEach, describe, expect, test } from 'vitest'
import { type TestClock, testClock } from './clock.ts'
import { admissionRules } from './store-rules/admissions.ts'
import { approvalRules } from './store-rules/approvals.ts'
import { arrivalRules } from './store-rules/arrivals.ts'
import { auditRules } from './store-rules/audit.ts'
import { changeRules } from './store-rules/changes.ts'
import { counterRules } from './store-rules/counters.ts'
import { deviceRules } from './store-rules/devices.ts'
import { eraseRules } from './store-rules/erase.ts'
import { idempotencyRules } from './store-rules/idempotency.ts'
import { inboxRules } from './store-rules/inbox.ts'
import { keyValueRules } from './store-rules/key-value.ts'
import { leaseRules } from './store-rules/leases.ts'
import { lifeCycleRules } from './store-rules/life-cycle.ts'
import { memoryRules } from './store-rules/memory.ts'
import { outboxRules } from './store-rules/outbox.ts'
import { ownedWorkRules } from './store-rules/owned-work.ts'
import { pruneRules } from './store-rules/prune.ts'
import { replyRules } from './store-rules/replies.ts'
import { replyExtraRules } from './store-rules/reply-extras.ts'
import { sessionRules } from './store-rules/sessions.ts'
import { sopRunRules } from './store-rules/sop-runs.ts'
import { sopStartRules } from './store-rules/sop-starts.ts'
import { sopWaitingRules } from './store-rules/sop-waiting.ts'
import type { StoreRules } from './store-rules/store-bench.ts'
import { summaryRules } from './store-rules/summaries.ts'
import { traceRules } from './store-rules/traces.ts'
import { turnRules } from './store-rules/turns.ts'

export type { StoreBench, StoreRules } from './store-rules/store-bench.ts'

/** A store backend under test. */
export interface StoreSubject {
  readonly name: string
  /** Opens an empty store that no other caller uses. */
  open(clock: Clock): Store | Promise<Store>
  /** Opens the data of `store` again, as another process does; `store` may still be open. */
  reopen(store: Store, clock: Clock): Store | Promise<Store>
  /** Waits until reads and writes that the passing of time began have ended. Absent for a backend that needs no wait. */
  settle?(stores: readonly Store[]): Promise<void>
  /** Rules this backend does not keep, each with its reason. */
  readonly except?: readonly { readonly rule: string; readonly why: string }[]
}

/** Every rule, by the group it belongs to. */
export const STORE_RULES: Readonly<Record<string, StoreRules>> = {
  sessions: sessionRules,
  'session summaries': summaryRules,
  turns: turnRules,
  idempotency: idempotencyRules,
  devices: deviceRules,
  memory: memoryRules,
  'keys and values': keyValueRules,
  arrivals: arrivalRules,
  inbox: inboxRules,
  replies: replyRules,
  'reply extras': replyExtraRules,
  outbox: outboxRules,
  traces: traceRules,
  admissions: admissionRules,
  approvals: approvalRules,
  'sop starts': sopStartRules,
  'sop waiting': sopWaitingRules,
  'sop runs': sopRunRules,
  'audit log': auditRules,
  prune: pruneRules,
  erase: eraseRules,
  leases: leaseRules,
  'owned work': ownedWorkRules,
  'change notices': changeRules,
  counters: counterRules,
  'life cycle': lifeCycleRules,
}

/** Registers one test for each rule. */
export function storeConformance({ name, open, reopen, settle, except = [] }: StoreSubject): void {
  const left = new Map(except.map(({ rule, why }) => [rule, why]))
  const opened: Store[] = []
  const track = async (store: Store | Promise<Store>): Promise<Store> => {
    opened.push(await store)
    return store
  }

  describe(`store conformance: ${name}`, () => {
    afterEach(async () => {
      for (const store of opened.splice(0)) await store.close()
    })

    test('every exception names a rule and gives a reason', () => {
      const known = Object.values(STORE_RULES).flatMap((rules) => Object.keys(rules))
      for (const [rule, why] of left) {
        expect(known).toContain(rule)
        expect(why).not.toBe('')
      }
    })

    describe.each(Object.entries(STORE_RULES))('%s', (_group, rules) => {
      for (const [rule, hold] of Object.entries(rules)) {
        const why = left.get(rule)
        test.skipIf(why !== undefined)(why === undefined ? rule : `${rule} (left out: ${why})`, async () => {
          const clock = settle ? settling(testClock(), () => settle(opened)) : testClock()
          const store = await track(open(clock))
          await hold({
            store,
            clock,
            otherProcess: () => track(reopen(store, clock)),
            async restart() {
              await store.close()
              return track(reopen(store, clock))
            },
          })
        })
      }
    })
  })
}

/** Returns the clock with an `advance` that also waits for the work that it began. */
const settling = (clock: TestClock, settle: () => Promise<void>): TestClock => ({
  nowMs: clock.nowMs,
  monotonicMs: clock.monotonicMs,
  sleep: clock.sleep,
  jump: clock.jump,
  get sleeping() {
    return clock.sleeping
  },
  async advance(ms) {
    await clock.advance(ms)
    await settle()
  },
})
