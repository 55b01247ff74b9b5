/** Ways to change a text: a header's value or a query. */
import { createHash } from 'node:crypto'
import type { Random } from './random.ts'

/** `donor` is the same part of another valid request. */
export type TextMutation = (value: string, random: Random, donor: string) => string

const HUGE_CHARS = 100_000
const HUGE_CHANCE = 0.002

const ODD_CHARACTERS = [...'\0\t\n\r\u000b\u00a0\u00ad\u200b\ufeff\u2028"\'`,;=+-_./%&#?*()[]{}<>|\\^~!@$:0aAfFgGzZ9 é😀'] as const
/** For digits and letters, others that look the same. */
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

const cut = (random: Random, value: string): number => random.below(value.length + 1)

const edits: Readonly<Record<string, TextMutation>> = {
  'flip a bit'(value, random) {
    const at = random.below(Math.max(1, value.length))
    const flipped = String.fromCharCode((value.charCodeAt(at) || 0) ^ (1 << random.below(8)))
    return value.slice(0, at) + flipped + value.slice(at + 1)
  },
  'cut the end': (value, random) => value.slice(0, cut(random, value)),
  'cut the beginning': (value, random) => value.slice(cut(random, value)),
  'leave a character out'(value, random) {
    const at = cut(random, value)
    return value.slice(0, at) + value.slice(at + 1)
  },
  'put a character in'(value, random) {
    const at = cut(random, value)
    return value.slice(0, at) + random.pick(ODD_CHARACTERS) + value.slice(at)
  },
  'replace a character'(value, random) {
    const at = cut(random, value)
    return value.slice(0, at) + random.pick(ODD_CHARACTERS) + value.slice(at + 1)
  },
  'say a piece twice'(value, random) {
    const [from, to] = [cut(random, value), cut(random, value)].toSorted((a, b) => a - b)
    return value.slice(0, to) + value.slice(from)
  },
  'swap two characters'(value, random) {
    const characters = [...value]
    const [a, b] = [random.below(Math.max(1, characters.length)), random.below(Math.max(1, characters.length))]
    ;[characters[a], characters[b]] = [characters[b] ?? '', characters[a] ?? '']
    return characters.join('')
  },
  'append something': (value, random) =>
    value + Buffer.from(random.bytes(1 + random.below(8))).toString(random.pick(['hex', 'base64', 'latin1'])),
  'splice another': (value, random, donor) => value.slice(0, cut(random, value)) + donor.slice(cut(random, donor)),
  'take another': (_value, _random, donor) => donor,
  'say nothing': (_value, random) => random.pick(['', ' ', '\t', ',', '""', 'null', 'undefined', '0', 'true', '*']),
  huge: (value, random) =>
    random.chance(HUGE_CHANCE) ? value + random.pick(['0', 'a', '=', ' ', value]).repeat(HUGE_CHARS / 50) : `${value}${value}`,
}

const spellings: Readonly<Record<string, TextMutation>> = {
  'upper case': (value) => value.toUpperCase(),
  'lower case': (value) => value.toLowerCase(),
  'case of one letter'(value, random) {
    const at = cut(random, value)
    const letter = value[at] ?? ''
    return value.slice(0, at) + (letter === letter.toUpperCase() ? letter.toLowerCase() : letter.toUpperCase()) + value.slice(at + 1)
  },
  'white space around': (value, random) =>
    random.pick([` ${value}`, `${value} `, `\t${value}\t`, `\u00a0${value}`, `${value}\r\n`, `${value}\0`]),
  'white space inside'(value, random) {
    const at = cut(random, value)
    return value.slice(0, at) + random.pick([' ', '\t', '\u00a0', '\r\n ', '%20', '+']) + value.slice(at)
  },
  'a look-alike'(value, random) {
    const at = cut(random, value)
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
    const at = cut(random, value)
    const character = value[at] ?? ''
    return value.slice(0, at) + (character && `%${character.charCodeAt(0).toString(16).padStart(2, '0')}`) + value.slice(at + 1)
  },
  quoted: (value, random) => random.pick([`"${value}"`, `'${value}'`, `<${value}>`, `(${value})`, `[${value}]`, `${value};`, `${value}, `]),
  'another prefix': (value, random) => random.pick(PREFIXES) + (random.chance(0.5) ? value : value.replace(/^(?:sha256=|v\d+,)/, '')),
  'another scheme': (value, random) => `${random.pick(SCHEMES)} ${value.replace(/^bearer /i, '')}`,
}

/** Other ways to write the bytes of a signature. */
const encodings: Readonly<Record<string, TextMutation>> = {
  'another encoding'(value, random) {
    const [, prefix = '', encoded = ''] = /^(sha256=|v1,|bearer )?(.*)$/is.exec(value) ?? []
    const bytes = /^[0-9a-f]+$/i.test(encoded) && encoded.length % 2 === 0 ? Buffer.from(encoded, 'hex') : Buffer.from(encoded, 'base64')
    const written = [
      bytes.toString('base64'),
      bytes.toString('base64url'),
      bytes.toString('hex'),
      bytes.toString('latin1'),
      bytes.toReversed().toString(),
      Buffer.from(bytes.toReversed()).toString('hex'),
      Buffer.from(encoded).toString('hex'),
      Buffer.from(encoded).toString('base64'),
      `0x${encoded}`,
      encoded.replace(/(..)/g, '$1:'),
      encoded.replace(/=+$/, ''),
      `${encoded}=`,
      `${encoded}==`,
      encoded.replaceAll('+', '-').replaceAll('/', '_'),
      createHash('sha256').update(encoded).digest('hex'),
    ]
    return prefix + random.pick(written)
  },
  /** The last character of base64 may hold bits that mean nothing: written with others, the bytes are the same. */
  'bits that mean nothing'(value, random) {
    const at = value.search(/=*$/) - 1
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
    const index = alphabet.indexOf(value.charAt(at).replace('-', '+').replace('_', '/'))
    return at < 0 || index < 0 ? `${value}=` : value.slice(0, at) + alphabet[index ^ (1 + random.below(15))] + value.slice(at + 1)
  },
  'several at once': (value, random, donor) =>
    random.pick([
      `${value} ${donor}`,
      `${donor} ${value}`,
      `${value},${donor}`,
      `${donor}, ${value}`,
      `${value}, ${value}`,
      `${value} ${value}`,
      `${value};${donor}`,
    ]),
}

/** Other ways to write a number, and other numbers. */
const numbers: Readonly<Record<string, TextMutation>> = {
  'another form of the number'(value, random) {
    const number = Number(value)
    return random.pick([
      `${value}.0`,
      `${value}.`,
      `${value}.5`,
      `+${value}`,
      `-${value}`,
      `0${value}`,
      `00000000${value}`,
      `${value}e0`,
      `${value}E+0`,
      `${value}n`,
      `${value}_0`,
      `0x${number.toString(16)}`,
      `0b${number.toString(2)}`,
      `0o${number.toString(8)}`,
      number.toString(16),
      number.toExponential(),
      `${number / 10}e1`,
      `${number * 10}e-1`,
      number.toLocaleString('en'),
      `${value}000`,
      `${number + 2 ** 32}`,
      `${number - 2 ** 32}`,
      `${2n ** 64n + BigInt(Number.isSafeInteger(number) ? number : 0)}`,
      new Date(Math.min(number, 1e10) * 1000).toISOString(),
      'NaN',
      'Infinity',
      '-0',
      '9'.repeat(400),
    ])
  },
  'another number': (value, random) =>
    String(Number(value) + random.pick([1, -1]) * (1 + random.below(random.pick([2, 10, 299, 301, 100_000])))),
}

const of = (mutations: Readonly<Record<string, TextMutation>>) => Object.entries(mutations)
const ANY = [...of(edits), ...of(spellings), ...of(encodings)]
const ANY_NUMBER = [...ANY, ...of(numbers), ...of(numbers), ...of(numbers)]

/** A change of `value`, and what it is called; it may happen to change nothing. */
export function mutateText(value: string, random: Random, donor: string): { readonly name: string; readonly value: string } {
  const [name, mutate] = random.pick(/^\d+$/.test(value) ? ANY_NUMBER : ANY)
  return { name, value: mutate(value, random, donor) }
}

/** A header holds bytes: what is written in UTF-8 arrives as one character for each of them. */
const asReceived = (text: string, random: Random): string => (random.chance(0.5) ? Buffer.from(text).toString('latin1') : text)
