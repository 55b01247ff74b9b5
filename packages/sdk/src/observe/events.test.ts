import * as v from 'valibot'
import { expect, expectTypeOf, test } from 'vitest'
import type { ApprovalState } from '../store/approval-store.ts'
import type { SopRunStatus, SopStepResult, TriggerKind } from '../store/sop.ts'
import { eventMembers, eventSchema, type SluiceEvent } from './events.ts'

type Of<Type extends SluiceEvent['type']> = Extract<SluiceEvent, { readonly type: Type }>

test('has the event types of the ports', () => {
  expectTypeOf<Of<'human_approval_resolved'>['state']>().toEqualTypeOf<Exclude<ApprovalState, 'pending'>>()
  expectTypeOf<Of<'sop_run'>['status']>().toEqualTypeOf<SopRunStatus>()
  expectTypeOf<Of<'sop_step'>['status']>().toEqualTypeOf<'started' | SopStepResult['status']>()
  expectTypeOf<Of<'sop_skipped'>['source']>().toEqualTypeOf<TriggerKind>()
  expectTypeOf<Of<'turn_started'>>().toEqualTypeOf<{
    readonly type: 'turn_started'
    readonly turn_id: string
    readonly session_id: string | null
    readonly agent?: string | undefined
    readonly source: string
  }>()
})

test('describes every type once', () => {
  const members = eventMembers()
  expect(new Set(members.map(({ type }) => type)).size).toBe(members.length)
  expect(members.length).toBeGreaterThanOrEqual(19)
  for (const { description } of members) expect(description).not.toBe('')
})

test.each([
  [{ type: 'config_rejected', error: 'no' }, true],
  [{ type: 'x_mine', anything: [1] }, true],
  [{ type: 'config_rejected' }, false],
  [{ type: 'mine', error: 'no' }, false],
  [{ type: 'human_approval_resolved', run_id: 'r', step_id: 's', approved: true, state: 'pending', feedback: null, by: 'x' }, false],
])('accepts %j: %s', (event, fits) => {
  expect(v.is(eventSchema, event)).toBe(fits)
})
