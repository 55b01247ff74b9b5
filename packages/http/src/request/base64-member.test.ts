/** A file is taken out of a JSON body, wherever the body is cut into pieces. */
import { describe, expect, test } from 'vitest'
import { Base64Member } from './base64-member.ts'

const BYTES = Buffer.from('fbff00102030ff', 'hex')
const DATA = BYTES.toString('base64')
/** The begin of an object whose first text ends with a backslash. */
const ODD = String.raw`{"a":"\"}{[\\",`

/** Feeds a body in pieces of this many bytes. */
function take(body: string | Buffer, size = 7, restBytesMax = 1000) {
  const member = new Base64Member('data', restBytesMax)
  const all = Buffer.from(body)
  const found: Buffer[] = []
  for (let at = 0; at < all.length; at += size) found.push(member.take(all.subarray(at, at + size)))
  return { bytes: Buffer.concat(found), rest: Buffer.from(member.rest).toString() }
}

const refusal = (body: string) => {
  try {
    return take(body)
  } catch (error) {
    return error
  }
}

describe.each<[string, string, string]>([
  ['at the end', `{"name":"x","data":"${DATA}"}`, '{"name":"x","data":""}'],
  ['at the begin, with blanks', ` { "data" : "${DATA}" , "a":[1,{"data":"AA"}] } `, ' { "data" : "" , "a":[1,{"data":"AA"}] } '],
  ['after a text with quotes and marks', `${ODD}"data":"${DATA}"}`, `${ODD}"data":""}`],
  ['after an object and a list', `{"a":{"b":"data"},"c":["data"],"data":"${DATA}"}`, '{"a":{"b":"data"},"c":["data"],"data":""}'],
])('a member %s', (_, body, rest) => {
  test.each([1, 2, 3, 4, 5, 64])('in pieces of %i bytes', (size) => {
    expect(take(body, size)).toEqual({ bytes: BYTES, rest })
  })
})

test.each([1, 3, 5, 8])('escaped characters are Base64, in pieces of %i bytes', (size) => {
  const escaped = DATA.replaceAll('/', String.raw`\/`).replaceAll('+', String.raw`\u002B`).replaceAll('=', String.raw`\u003d`)
  expect(escaped).toContain('u002B')
  expect(take(`{"data":"${escaped}"}`, size).bytes).toEqual(BYTES)
})

test.each(['{"data":7}', '{"data":["QQ=="]}', '{"a":{"data":"QQ=="}}', '["data","QQ=="]', '{"name":"x"}', '', '{'])(
  'a body without the text of the member stays as it is: %s',
  (body) => {
    expect(take(body)).toEqual({ bytes: Buffer.alloc(0), rest: body })
  },
)

test.each([
  ['padding in the middle', '{"data":"QQ==QQ=="}'],
  ['other characters', '{"data":"QQ-_"}'],
  ['no padding', '{"data":"QQ"}'],
  ['a quote that is escaped', String.raw`{"data":"QQ\"QQ=="}`],
  ['another escape', String.raw`{"data":"QQ\n=="}`],
  ['the member twice', '{"data":"QQ==","data":"QQ=="}'],
])('%s is refused', (_, body) => {
  expect(refusal(body)).toMatchObject({ code: 'invalid_request' })
})

test('the members other than the file are bounded', () => {
  const body = (bytes: number) => `{"name":"${'x'.repeat(bytes)}","data":"${DATA}"}`
  expect(take(body(900)).bytes).toEqual(BYTES)
  expect(() => take(body(1001))).toThrow(expect.objectContaining({ code: 'too_large' }))
})
