/** Tests of the error table and of build instructions. */
import { describe, expect, test } from 'vitest'
import { AppError, buildHint, ERRORS, errorText, formatTraceparent, howToGet, parseTraceparent } from '../index.ts'

describe('the error table', () => {
  test('has a status, a title and an exit code for every code', () => {
    for (const [code, { status, title, exit }] of Object.entries(ERRORS)) {
      expect(code).toMatch(/^[a-z_]+$/)
      expect(status).toBeGreaterThanOrEqual(400)
      expect(title).toMatch(/^[A-Z]/)
      expect([1, 2, 78]).toContain(exit)
    }
  })

  test('titles 429 Too Many Requests', () => expect(ERRORS.rate_limited).toMatchObject({ status: 429, title: 'Too Many Requests' }))

  test('gives an error its cause and status', () => {
    const cause = new Error('below')
    const error = new AppError('upstream', 'above', { cause, retryAfterSecs: 3 })
    expect(error).toMatchObject({ status: 502, message: 'above', cause, retryAfterSecs: 3, fields: {} })
    expect([errorText(error), errorText('plain'), errorText(undefined)]).toEqual(['above', 'plain', 'undefined'])
    const fetchError = (cause: unknown) => new TypeError('fetch failed', { cause })
    expect(errorText(fetchError(new Error('connect ECONNREFUSED 127.0.0.1:9')))).toBe('connect ECONNREFUSED 127.0.0.1:9')
    expect(errorText(fetchError(Object.assign(new AggregateError([], ''), { code: 'ECONNREFUSED' })))).toBe('ECONNREFUSED')
    expect(errorText(fetchError(undefined))).toBe('fetch failed')
  })
})

describe('build instructions', () => {
  test('add to the profile that runs', () => {
    expect(buildHint('hardware-probe', { profile: 'full', features: [] })).toBe('npm run build -- full --features probe')
    expect(buildHint('tool-pdf', { profile: 'minimal', features: ['hardware'], name: 'mine' })).toBe(
      'npm run build -- minimal --features hardware,rag-pdf --name mine',
    )
    expect(buildHint('tool-shell', { profile: './mine.ts', features: [] })).toBe('npm run build -- ./mine.ts --features tool-shell')
  })

  test('add to a build that was composed from nothing', () => {
    expect(buildHint('webauthn', { features: ['provider-openai'] })).toBe('npm run build -- --only provider-openai,webauthn')
  })

  test('name a clone, in which the command exists, and the archive of a profile that has the feature', () => {
    expect(howToGet('webauthn', { profile: 'full', features: [] })).toBe(
      "run 'npm run build -- full --features webauthn' in a clone of Sluice",
    )
    expect(howToGet('tool-pdf', { profile: 'minimal', features: [] })).toBe(
      "install the archive of the full profile, or run 'npm run build -- minimal --features rag-pdf' in a clone of Sluice",
    )
  })
})

describe('trace context', () => {
  test('reads a valid header, also of a later version, and nothing else', () => {
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
    const parentId = '00f067aa0ba902b7'
    expect(parseTraceparent(`00-${traceId}-${parentId}-01`)).toEqual({ traceId, parentId })
    expect(formatTraceparent({ traceId, spanId: parentId, parentId: null })).toBe(`00-${traceId}-${parentId}-01`)
    expect(parseTraceparent(`01-${traceId}-${parentId}-01`)).toEqual({ traceId, parentId })
    expect(parseTraceparent(`01-${traceId}-${parentId}-01-more`)).toEqual({ traceId, parentId })
    for (const wrong of [
      '',
      'x',
      `ff-${traceId}-${parentId}-01`,
      `00-${traceId}-${parentId}-01-more`,
      `00-${'0'.repeat(32)}-${parentId}-01`,
      `00-${traceId}-${'0'.repeat(16)}-01`,
      `00-${traceId.toUpperCase()}-${parentId}-01`,
    ])
      expect(parseTraceparent(wrong)).toBeUndefined()
  })
})
