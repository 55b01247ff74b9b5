import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LINE_BYTES_MAX, ResponseSplitter } from './imap-responses.ts'
import { parseValues } from './imap-values.ts'

const BYTES_MAX = 1000
const STREAM = Buffer.from(
  '* OK ready\r\n* 1 FETCH (UID 7 BODY[] {6}\r\na\r\n(b)"x" BODY[1]<0> {0}\r\n X "q \\" \\\\")\r\n+ go on\r\nA1 OK done\r\n* LIST () NIL ~\r\n',
  'latin1',
)
const EXPECTED = [
  { tag: '*', text: 'OK ready', literals: [] },
  { tag: '*', text: '1 FETCH (UID 7 BODY[] \0"x" BODY[1]<0> \0 X "q \\" \\\\")', literals: [Buffer.from('a\r\n(b)'), Buffer.alloc(0)] },
  { tag: '+', text: 'go on', literals: [] },
  { tag: 'A1', text: 'OK done', literals: [] },
  { tag: '*', text: 'LIST () NIL ~', literals: [] },
]

test('splits a stream in the same way wherever it is cut', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(STREAM.length)), (cuts) => {
      const splitter = new ResponseSplitter(BYTES_MAX)
      const ends = [0, ...cuts.toSorted((a, b) => a - b), STREAM.length]
      const found = ends.flatMap((end, at) => splitter.take(Buffer.from(STREAM.subarray(ends[at - 1] ?? 0, end))))
      expect(found).toEqual(EXPECTED)
      expect(splitter.isPartial).toBe(false)
    }),
  )
})

test('knows whether a response is only begun', () => {
  const splitter = new ResponseSplitter(BYTES_MAX)
  splitter.take(Buffer.from('* X {3}\r\n'))
  expect(splitter.isPartial).toBe(true)
  splitter.take(Buffer.from('abc'))
  expect(splitter.isPartial).toBe(true)
  expect(splitter.take(Buffer.from('\r\n'))).toHaveLength(1)
  expect(splitter.isPartial).toBe(false)
})

test.each([
  ['a literal', `* X {${BYTES_MAX + 1}}\r\n`],
  ['literals together', `* X {${BYTES_MAX}}\r\n${'a'.repeat(BYTES_MAX)} {1}\r\n`],
  ['very many literals', '* X {0}\r\n'.concat(' {0}\r\n'.repeat(1001))],
  ['a line', 'x'.repeat(LINE_BYTES_MAX + 1)],
])('refuses %s beyond the limit', (_, text) => {
  expect(() => new ResponseSplitter(BYTES_MAX).take(Buffer.from(text))).toThrow(/too (?:long|large)/)
})

test('parses values', () => {
  expect(parseValues('1 FETCH (FLAGS (\\Seen) BODY[HEADER.FIELDS (FROM TO)] \0 X NIL "NIL" "")', [Buffer.from('a')])).toEqual([
    '1',
    'FETCH',
    ['FLAGS', ['\\Seen'], 'BODY[HEADER.FIELDS (FROM TO)]', Buffer.from('a'), 'X', null, 'NIL', ''],
  ])
})

test.each(['(', ')', '"', '(a', 'a)', '\0', '"\\'])('refuses %j', (text) => {
  expect(() => parseValues(text, [])).toThrow()
})
