import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { APPROVE_KEYWORDS, keywordsOf, REJECT_KEYWORDS, verdictOf } from './keywords.ts'

const DEFAULTS = keywordsOf({})

test('the defaults stand in for a list that is not given or empty', () => {
  expect(DEFAULTS).toEqual({ approveKeywords: APPROVE_KEYWORDS, rejectKeywords: REJECT_KEYWORDS })
  expect(keywordsOf({ approveKeywords: [], rejectKeywords: [' Stop It '] })).toEqual({
    approveKeywords: APPROVE_KEYWORDS,
    rejectKeywords: ['stop it'],
  })
})

describe('decisions: a whole trimmed message equal to a keyword, or a keyword, a space and feedback', () => {
  test.each([
    ['approve', true, null],
    ['  LGTM\n', true, null],
    ['yes but tell ops', true, 'but tell ops'],
    ['no', false, null],
    ['Reject the Tests are red', false, 'the Tests are red'],
    ['reject\n\nlate', false, 'late'],
  ])('%j', (text, approved, feedback) => {
    expect(verdictOf(text, DEFAULTS)).toEqual({ approved, feedback })
  })

  test.each(['', ' ', 'yesterday', 'approved?', 'no, thanks', 'I say yes', '/approve', 'nope', 'ye s'])('%j says nothing', (text) => {
    expect(verdictOf(text, DEFAULTS)).toBeUndefined()
  })

  test('keywords that approve are tried first', () => {
    const keywords = keywordsOf({ approveKeywords: ['no objection'], rejectKeywords: ['no'] })
    expect(verdictOf('No objection', keywords)).toEqual({ approved: true, feedback: null })
    expect(verdictOf('no objections', keywords)).toEqual({ approved: false, feedback: 'objections' })
  })

  test('feedback is cut at its bound, and between characters', () => {
    expect(verdictOf(`no ${'x'.repeat(3999)}\u{1f600}`, DEFAULTS)?.feedback).toHaveLength(4000)
    expect(verdictOf(`no ${'x'.repeat(3999)}\u{1f600}`, DEFAULTS)?.feedback?.isWellFormed()).toBe(true)
  })

  test('no text without a keyword in front is a verdict', () => {
    const begins = (text: string) => /^\s*(approve|approved|yes|lgtm|reject|rejected|no)(\s|$)/i.test(text)
    const words = fc.array(fc.constantFrom('approve', 'yes', 'YES', 'no', 'so', ' ', '\n', '.', 'İ', 'ß'), { maxLength: 6 })
    fc.assert(fc.property(words, (parts) => (verdictOf(parts.join(''), DEFAULTS) !== undefined) === begins(parts.join(''))))
  })
})
