import { describe, expect, test } from 'vitest'
import { formatTraceContext, parseTraceContext, parseTraceparent, type Trace } from './trace.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const spanId = '00f067aa0ba902b7'
const header = `00-${traceId}-${spanId}-01`

describe('W3C Trace Context', () => {
  test('passes the state on with the parent', () => {
    expect(parseTraceparent(header, 'a=1,b=2')).toEqual({ traceId, parentId: spanId, state: 'a=1,b=2' })
  })

  const fields = `${traceId}-${spanId}-01`

  test.each([header, `01-${fields}`, `cc-${fields}`, `01-${fields}-`, `cc-${fields}-what-comes-later`])(
    'reads the parent of %s',
    (line) => {
      expect(parseTraceparent(line)).toEqual({ traceId, parentId: spanId })
    },
  )

  test.each([
    `ff-${fields}`,
    `${header}-`,
    `${header}-more`,
    `01-${fields}more`,
    `01-${fields}.`,
    `1-${fields}`,
    `0G-${fields}`,
    `01-${fields.toUpperCase()}`,
    `01-${'0'.repeat(32)}-${spanId}-01`,
    `01-${traceId}-${'0'.repeat(16)}-01`,
    header.slice(0, -1),
    ` ${header}`,
  ])('refuses %j', (line) => expect(parseTraceparent(line)).toBeUndefined())

  test.each([undefined, null, '', 'a=1\nb=2', 'ä=1', `a=${'1'.repeat(511)}`])(
    'a state that cannot be passed on is left out: %j',
    (state) => {
      expect(parseTraceparent(header, state)).toEqual({ traceId, parentId: spanId })
    },
  )

  test.each<[Trace, string]>([
    [{ traceId, spanId, parentId: null }, header],
    [{ traceId, spanId, parentId: null, state: 'a=1, b=2' }, `${header} a=1, b=2`],
  ])('reads a stored span as the parent of others', (trace, line) => {
    expect(formatTraceContext(trace)).toBe(line)
    const { state } = trace
    expect(parseTraceContext(line)).toEqual({ traceId, parentId: spanId, ...(state !== undefined && { state }) })
  })

  test.each(['', 'x', header.slice(1), `01${header.slice(2)}`])('reads no parent from %j', (line) => {
    expect(parseTraceContext(line)).toBeUndefined()
  })
})
