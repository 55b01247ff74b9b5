/** Changes of a text that ignore its meaning. */
import { placeIn, type TextMutations } from './text-mutation.ts'

const HUGE_CHARS = 100_000
const HUGE_CHANCE = 0.002
const ODD_CHARACTERS = [...'\0\t\n\r\u000b\u00a0\u00ad\u200b\ufeff\u2028"\'`,;=+-_./%&#?*()[]{}<>|\\^~!@$:0aAfFgGzZ9 é😀'] as const

/** The changes by name. */
export const EDITS: TextMutations = {
  'flip a bit'(value, random) {
    const at = random.below(Math.max(1, value.length))
    const flipped = String.fromCharCode((value.charCodeAt(at) || 0) ^ (1 << random.below(8)))
    return value.slice(0, at) + flipped + value.slice(at + 1)
  },
  'cut the end': (value, random) => value.slice(0, placeIn(value, random)),
  'cut the beginning': (value, random) => value.slice(placeIn(value, random)),
  'remove a character'(value, random) {
    const at = placeIn(value, random)
    return value.slice(0, at) + value.slice(at + 1)
  },
  'insert a character'(value, random) {
    const at = placeIn(value, random)
    return value.slice(0, at) + random.pick(ODD_CHARACTERS) + value.slice(at)
  },
  'replace a character'(value, random) {
    const at = placeIn(value, random)
    return value.slice(0, at) + random.pick(ODD_CHARACTERS) + value.slice(at + 1)
  },
  'repeat a piece'(value, random) {
    const [from, to] = [placeIn(value, random), placeIn(value, random)].toSorted((a, b) => a - b)
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
  'splice another': (value, random, donor) => value.slice(0, placeIn(value, random)) + donor.slice(placeIn(donor, random)),
  'take another': (_value, _random, donor) => donor,
  'an empty value': (_value, random) => random.pick(['', ' ', '\t', ',', '""', 'null', 'undefined', '0', 'true', '*']),
  huge(value, random) {
    const piece = random.pick(['0', 'a', '=', ' ', value || '0'])
    return value.padEnd(random.chance(HUGE_CHANCE) ? HUGE_CHARS : 2 * value.length, piece)
  },
}
