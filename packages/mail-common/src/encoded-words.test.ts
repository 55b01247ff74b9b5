import { expect, test } from 'vitest'
import { decodeWords } from './encoded-words.ts'

test.each<[encoded: string, text: string]>([
  ['plain', 'plain'],
  ['=?utf-8?B?SMOpbGxv?=', 'Héllo'],
  ['=?UTF-8?q?H=C3=A9llo_you?=', 'Héllo you'],
  ['=?iso-8859-1?Q?H=e9llo?=', 'Héllo'],
  ['Re: =?utf-8?Q?a?= =?utf-8?Q?b?= c', 'Re: ab c'],
  ['=?utf-8*en?Q?a?=', 'a'],
  ['=?klingon?Q?a?=', '=?klingon?Q?a?='],
  ['=?utf-8?X?a?=', '=?utf-8?X?a?='],
  ['=?', '=?'],
])('decodeWords(%j) is %j', (encoded, text) => {
  expect(decodeWords(encoded)).toBe(text)
})
