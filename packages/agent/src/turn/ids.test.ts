import { expect, test } from 'vitest'
import { createTurnIds, newTrace, newTurnId } from './ids.ts'

test('a turn id is a version 7 UUID and sorts by time', () => {
  const ids = [1, 2, 1_700_000_000_000, 1_800_000_000_000].map(newTurnId)
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(ids.toSorted()).toEqual(ids)
})

test('turn ids of one moment differ', () => {
  expect(new Set(Array.from({ length: 1000 }, () => newTurnId(5))).size).toBe(1000)
})

test('ids of one agent sort in their order, also within a millisecond and when the clock is set back', () => {
  let nowMs = 1_700_000_000_000
  const newId = createTurnIds({ nowMs: () => nowMs })
  const ids = Array.from({ length: 10_000 }, newId)
  nowMs -= 1000
  ids.push(newId())
  nowMs += 5000
  ids.push(newId())
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(new Set(ids).size).toBe(ids.length)
  expect(ids.toSorted()).toEqual(ids)
})

test('a new trace has no parent, and its ids have the lengths of W3C Trace Context', () => {
  const { traceId, spanId, parentId } = newTrace()
  expect(traceId).toMatch(/^[0-9a-f]{32}$/)
  expect(spanId).toMatch(/^[0-9a-f]{16}$/)
  expect(parentId).toBeNull()
})

test('a span names its local or remote parent', () => {
  const trace = newTrace()
  expect(newTrace(trace)).toMatchObject({ traceId: trace.traceId, parentId: trace.spanId })
  expect(newTrace({ traceId: trace.traceId, parentId: 'b7ad6b7169203331' })).toMatchObject({ parentId: 'b7ad6b7169203331' })
})

test('each span has the state of its trace', () => {
  const below = newTrace({ traceId: 'a'.repeat(32), parentId: 'b'.repeat(16), state: 'v=1' })
  expect(newTrace(below)).toMatchObject({ parentId: below.spanId, state: 'v=1' })
  expect(newTrace(newTrace())).not.toHaveProperty('state')
})
