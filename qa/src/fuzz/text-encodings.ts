/** Other encodings of a signature's bytes, and other spellings of a number. */
import { createHash } from 'node:crypto'
import type { TextMutations } from './text-mutation.ts'

/** The changes of a signature by name. */
export const ENCODINGS: TextMutations = {
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
  /** Changes the unused bits in the last character of base64, which decodes to the same bytes. */
  'unused bits'(value, random) {
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

/** Changes of a text that is a number. */
export const NUMBERS: TextMutations = {
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
