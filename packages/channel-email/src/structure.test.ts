import { processorMs } from '@sluice/testkit/processor-time'
import { describe, expect, test } from 'vitest'
import { parseValues } from './imap-values.ts'
import { attachmentParts, decodeTransfer, parseStructure, textParts } from './structure.ts'

const parse = (text: string) => parseStructure(parseValues(text, [])[0])
const PLAIN = '("TEXT" "PLAIN" ("CHARSET" "UTF-8") NIL NIL "QUOTED-PRINTABLE" 12 1 NIL NIL NIL NIL)'
const HTML = '("text" "html" ("charset" "iso-8859-1") NIL NIL "base64" 120 2)'
const PDF = '("application" "pdf" ("name" "a.pdf") NIL NIL "base64" 4000 NIL ("attachment" ("filename" "b.pdf")) NIL NIL)'

test('reads a mail of one part', () => {
  expect(parse(PLAIN)).toEqual({
    number: '1',
    type: 'text/plain',
    charset: 'UTF-8',
    keepsMarks: false,
    encoding: 'quoted-printable',
    size: 12,
    isAttachment: false,
    name: '',
    parts: [],
  })
})

describe('the text', () => {
  const numbers = (text: string) => textParts(parse(text)).map(({ number }) => number)
  test.each([
    ['of a plain mail', PLAIN, ['1']],
    ['of an HTML mail', HTML, ['1']],
    ['of alternatives is the plain one', `(${PLAIN}${HTML} "alternative")`, ['1']],
    ['of alternatives in the wrong order is the plain one', `(${HTML}${PLAIN} "alternative")`, ['2']],
    ['of alternatives without a plain one is the last', `(${HTML}(${HTML}${PDF} "related") "alternative")`, ['2.1']],
    ['of a mixed mail is all of it', `(${PLAIN}${PDF}${HTML} "mixed")`, ['1', '3']],
    ['of nested parts', `((${PLAIN}${HTML} "alternative")${PDF} "mixed")`, ['1.1']],
    ['of a mail that is only a file is empty', PDF, []],
    [
      'is not that of a forwarded mail',
      `(${PLAIN}("message" "rfc822" NIL NIL NIL "7bit" 500 ("d" "s" NIL NIL NIL NIL NIL NIL NIL NIL) ${HTML} 10) "mixed")`,
      ['1'],
    ],
    ['is not that of a text file', `(${PLAIN}("text" "plain" ("name" "log.txt") NIL NIL "7bit" 5 1) "mixed")`, ['1']],
    ['is not that of an invitation', `(${PLAIN}("text" "calendar" NIL NIL NIL "7bit" 5 1) "alternative")`, ['1']],
  ])('%s', (_, structure, expected) => {
    expect(numbers(structure)).toEqual(expected)
  })
})

test('files are found with their numbers and names, of which the disposition counts first', () => {
  const found = attachmentParts(
    parse(
      `((${PLAIN}${HTML} "alternative")${PDF}("message" "rfc822" NIL NIL NIL "7bit" 500 ("d" "s" NIL NIL NIL NIL NIL NIL NIL NIL) ${HTML} 10 NIL ("attachment" NIL)) "mixed")`,
    ),
  )
  expect(found.map(({ number, name, type }) => [number, name, type])).toEqual([
    ['2', 'b.pdf', 'application/pdf'],
    ['3', '', 'message/rfc822'],
  ])
})

test.each([
  ['a plain name', '("filename" "a b.pdf")', 'a b.pdf'],
  ['encoded words', '("filename" "=?utf-8?Q?=C3=9Cbersicht.pdf?=")', 'Übersicht.pdf'],
  ['bytes of UTF-8', `("filename" "${Buffer.from('Ü.pdf').toString('latin1')}")`, 'Ü.pdf'],
  ['RFC 2231', `("filename*" "UTF-8''%C3%9Cber%20alles.pdf")`, 'Über alles.pdf'],
  ['pieces of RFC 2231', `("filename*1*" "%9Cber.pdf" "filename*0*" "UTF-8''%C3")`, 'Über.pdf'],
  ['plain pieces', `("filename*0" "a" "filename*1" "b.pdf")`, 'ab.pdf'],
  ['another charset', `("filename*" "iso-8859-1'de'%DC.pdf")`, 'Ü.pdf'],
])('decodes a name in %s', (_, parameters, name) => {
  expect(parse(`("image" "png" NIL NIL NIL "base64" 1 NIL ("inline" ${parameters}))`).name).toBe(name)
})

test.each([
  ['quoted-printable', 'Gr=C3=BC=C3=9Fe=\r\n und=20mehr   \r\n= x=ZZ', 'Grüße und mehr\r\n= x=ZZ'],
  ['base64', Buffer.from('Grüße').toString('base64'), 'Grüße'],
  ['base64', `${Buffer.from('Grüße!').toString('base64').slice(0, 5)}`, 'Gr\ufffd'],
  ['8bit', 'plain', 'plain'],
  ['x-unknown', 'plain', 'plain'],
])('decodes %s', (encoding, encoded, text) => {
  expect(decodeTransfer(Buffer.from(encoded), encoding).toString()).toBe(text)
})

test('hostile structures end in linear time and without a deep stack', () => {
  const beforeMs = processorMs()
  expect(() => parse('('.repeat(200_000))).toThrow()
  const deep = `${'('.repeat(90)}${PLAIN}${' "mixed")'.repeat(90)}`
  expect(textParts(parse(deep))).toEqual([])
  const wide = `(${PLAIN.repeat(5000)} "mixed")`
  expect(textParts(parse(wide)).length).toBeLessThanOrEqual(100)
  decodeTransfer(Buffer.from(' '.repeat(500_000)), 'quoted-printable')
  decodeTransfer(Buffer.from('='.repeat(500_000)), 'quoted-printable')
  expect(processorMs() - beforeMs).toBeLessThan(3000)
})
