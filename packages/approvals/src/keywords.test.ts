import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { APPROVE_KEYWORDS, keywordsOf, REJECT_KEYWORDS, verdictOf } from './keywords.ts'

const DEFAULTS = keywordsOf({})

test('keywordsOf returns the defaults for an absent or empty list', () => {
  expect(DEFAULTS).toEqual({ approveKeywords: APPROVE_KEYWORDS, rejectKeywords: REJECT_KEYWORDS })
  expect(keywordsOf({ approveKeywords: [], rejectKeywords: [' Stop It '] })).toEqual({
    approveKeywords: APPROVE_KEYWORDS,
    rejectKeywords: ['stop it'],
  })
})

describe('verdictOf decides by a keyword, or a keyword and feedback', () => {
  test.each([
    ['approve', true, null],
    ['  LGTM\n', true, null],
    ['yes but tell ops', true, 'but tell ops'],
    ['no', false, null],
    ['Approve.', true, null],
    ['YES!', true, null],
    ['No.', false, null],
    ['Reject the Tests are red', false, 'the Tests are red'],
    ['reject\n\nlate', false, 'late'],
  ])('%j', (text, approved, feedback) => {
    expect(verdictOf(text, DEFAULTS)).toEqual({ approved, feedback })
  })

  test.each(['', ' ', 'yesterday', 'approved?', 'approve.now', 'yes...no', 'no!?', 'no, thanks', 'I say yes', '/approve', 'nope', 'ye s'])(
    '%j decides nothing',
    (text) => {
      expect(verdictOf(text, DEFAULTS)).toBeUndefined()
    },
  )

  test('keywords that approve are tried first', () => {
    const keywords = keywordsOf({ approveKeywords: ['no objection'], rejectKeywords: ['no'] })
    expect(verdictOf('No objection', keywords)).toEqual({ approved: true, feedback: null })
    expect(verdictOf('no objections', keywords)).toEqual({ approved: false, feedback: 'objections' })
  })

  test('letters are compared in their normal form', () => {
    const keywords = keywordsOf({ approveKeywords: ['cafe\u0301'], rejectKeywords: ['n\u00e3o'] })
    expect(verdictOf('Caf\u00e9', keywords)).toEqual({ approved: true, feedback: null })
    expect(verdictOf('CAFE\u0301 now', keywords)).toEqual({ approved: true, feedback: 'now' })
    expect(verdictOf('na\u0303o', keywords)).toEqual({ approved: false, feedback: null })
    expect(() => keywordsOf({ approveKeywords: ['\u00e9'], rejectKeywords: ['e\u0301'] })).toThrow("'\u00e9' is in approve_keywords and in")
  })

  test('a keyword that rejects may not begin with one that approves', () => {
    expect(() => keywordsOf({ approveKeywords: ['ok'], rejectKeywords: ['ok not'] })).toThrow("'ok not' of reject_keywords would approve")
    expect(() => keywordsOf({ rejectKeywords: ['yes\u00a0but'] })).toThrow('would approve')
    expect(keywordsOf({ approveKeywords: ['no objection'], rejectKeywords: ['no', 'yesterday'] }).rejectKeywords).toEqual([
      'no',
      'yesterday',
    ])
  })

  test('feedback is cut at its limit, between characters', () => {
    expect(verdictOf(`no ${'x'.repeat(3999)}\u{1f600}`, DEFAULTS)?.feedback).toHaveLength(4000)
    expect(verdictOf(`no ${'x'.repeat(3999)}\u{1f600}`, DEFAULTS)?.feedback?.isWellFormed()).toBe(true)
  })

  test('a text decides if it begins with a keyword and white space, or is a keyword with nothing but a full stop behind it', () => {
    const begins = (text: string) => /^\s*(approve|approved|yes|lgtm|reject|rejected|no)(\s|[.!。！]{0,3}\s*$)/i.test(text)
    const words = fc.array(fc.constantFrom('approve', 'yes', 'YES', 'no', 'so', ' ', '\n', '.', 'İ', 'ß'), { maxLength: 6 })
    fc.assert(fc.property(words, (parts) => (verdictOf(parts.join(''), DEFAULTS) !== undefined) === begins(parts.join(''))))
  })
})
