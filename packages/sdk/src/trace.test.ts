import { describe, expect, test } from 'vitest'
import { formatTraceContext, parseTraceContext, parseTraceparent, type Trace } from './trace.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const spanId = '00f067aa0ba902b7'
const header = `00-${traceId}-${spanId}-01`

describe('W3C Trace Context', () => {
  test('the state goes with the parent', () => {
    expect(parseTraceparent(header, 'a=1,b=2')).toEqual({ traceId, parentId: spanId, state: 'a=1,b=2' })
  })

  test.each([undefined, null, '', 'a=1\nb=2', 'ä=1', `a=${'1'.repeat(511)}`])(
    'a state that cannot be passed on is left out: %j',
    (state) => {
      expect(parseTraceparent(header, state)).toEqual({ traceId, parentId: spanId })
    },
  )

  test.each<[Trace, string]>([
    [{ traceId, spanId, parentId: null }, header],
    [{ traceId, spanId, parentId: null, state: 'a=1, b=2' }, `${header} a=1, b=2`],
  ])('what is kept of a span is read as the parent of others', (trace, line) => {
    expect(formatTraceContext(trace)).toBe(line)
    const { state } = trace
    expect(parseTraceContext(line)).toEqual({ traceId, parentId: spanId, ...(state !== undefined && { state }) })
  })

  test.each(['', 'x', header.slice(1), `01${header.slice(2)}`])('anything else is no parent: %j', (line) => {
    expect(parseTraceContext(line)).toBeUndefined()
  })
})
