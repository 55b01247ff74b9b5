/** Texts that look the same, or mean the same to a lenient parser. */
import type { Random } from '@sluice/testkit/random'
import { placeIn, type TextMutations } from './text-mutation.ts'

/** Characters that look like others. */
const LOOK_ALIKES: Readonly<Record<string, string>> = {
  a: 'а',
  c: 'с',
  e: 'е',
  o: 'о',
  x: 'х',
  B: 'В',
  A: 'Α',
  v: 'ν',
  '=': '＝',
  '/': '∕',
  '+': '＋',
  '-': '‐',
  '.': '．',
  ',': '‚',
  ' ': '\u2003',
}
const DIGIT_ZEROS = [0x0660, 0x06f0, 0x0966, 0xff10, 0x1d7ce] as const
const PREFIXES = [
  'sha256=',
  'SHA256=',
  'Sha256=',
  'sha1=',
  'sha512=',
  'sha256:',
  'sha256==',
  'v1,',
  'v0,',
  'v2,',
  'V1,',
  'v1a,',
  'v1=',
  'v1 ,',
]
const SCHEMES = ['Basic', 'Bearer', 'bearer', 'BEARER', 'Bearer:', 'Token', 'Digest', 'Bearer\t', 'Bearer,', 'Bearer Bearer', 'Negotiate']

/** The changes by name. */
export const SPELLINGS: TextMutations = {
  'upper case': (value) => value.toUpperCase(),
  'lower case': (value) => value.toLowerCase(),
  'case of one letter'(value, random) {
    const at = placeIn(value, random)
    const letter = value[at] ?? ''
    return value.slice(0, at) + (letter === letter.toUpperCase() ? letter.toLowerCase() : letter.toUpperCase()) + value.slice(at + 1)
  },
  'white space around': (value, random) =>
    random.pick([` ${value}`, `${value} `, `\t${value}\t`, `\u00a0${value}`, `${value}\r\n`, `${value}\0`]),
  'white space inside'(value, random) {
    const at = placeIn(value, random)
    return value.slice(0, at) + random.pick([' ', '\t', '\u00a0', '\r\n ', '%20', '+']) + value.slice(at)
  },
  'a look-alike'(value, random) {
    const at = placeIn(value, random)
    const character = value[at] ?? ''
    const digit = /\d/.test(character) && String.fromCodePoint(random.pick(DIGIT_ZEROS) + Number(character))
    const other = value.slice(0, at) + (digit || (LOOK_ALIKES[character] ?? '\u0301')) + value.slice(at + 1)
    return asReceived(other, random)
  },
  'look-alike digits'(value, random) {
    const zero = random.pick(DIGIT_ZEROS)
    return asReceived(
      value.replace(/\d/g, (digit) => String.fromCodePoint(zero + Number(digit))),
      random,
    )
  },
  'percent-encoded'(value, random) {
    const at = placeIn(value, random)
    const character = value[at] ?? ''
    return value.slice(0, at) + (character && `%${character.charCodeAt(0).toString(16).padStart(2, '0')}`) + value.slice(at + 1)
  },
  quoted: (value, random) => random.pick([`"${value}"`, `'${value}'`, `<${value}>`, `(${value})`, `[${value}]`, `${value};`, `${value}, `]),
  'another prefix': (value, random) => random.pick(PREFIXES) + (random.chance(0.5) ? value : value.replace(/^(?:sha256=|v\d+,)/, '')),
  'another scheme': (value, random) => `${random.pick(SCHEMES)} ${value.replace(/^bearer /i, '')}`,
}

/** Headers carry bytes, so half of the time each byte of the UTF-8 text becomes one character. */
const asReceived = (text: string, random: Random): string => (random.chance(0.5) ? Buffer.from(text).toString('latin1') : text)
