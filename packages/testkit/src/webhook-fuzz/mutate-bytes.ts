/** Changes of a body, many of which keep its meaning. */
import type { Random } from '../random.ts'

type ByteMutation = (body: Uint8Array, random: Random, donor: Uint8Array) => Uint8Array

const HUGE_BYTES = 200_000
const HUGE_CHANCE = 0.002

const cut = (random: Random, body: Uint8Array): number => random.below(body.length + 1)
const textOf = (body: Uint8Array): string => Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()
const join = (...parts: Uint8Array[]): Uint8Array => Buffer.concat(parts)

const edits: Readonly<Record<string, ByteMutation>> = {
  'flip a bit'(body, random) {
    const changed = Uint8Array.from(body)
    const at = random.below(Math.max(1, body.length))
    changed[at] = (body[at] ?? 0) ^ (1 << random.below(8))
    return changed
  },
  'flip bits'(body, random) {
    const changed = Uint8Array.from(body)
    for (let count = 2 + random.below(30); count > 0; count--) changed[random.below(Math.max(1, body.length))] = random.below(256)
    return changed
  },
  'cut the end': (body, random) => body.subarray(0, cut(random, body)),
  'cut the beginning': (body, random) => body.subarray(cut(random, body)),
  'remove a byte'(body, random) {
    const at = cut(random, body)
    return join(body.subarray(0, at), body.subarray(at + 1))
  },
  'insert bytes'(body, random) {
    const at = cut(random, body)
    return join(body.subarray(0, at), random.bytes(1 + random.below(6)), body.subarray(at))
  },
  'repeat a piece'(body, random) {
    const [from = 0, to = 0] = [cut(random, body), cut(random, body)].toSorted((a, b) => a - b)
    return join(body.subarray(0, to), body.subarray(from))
  },
  'splice another': (body, random, donor) => join(body.subarray(0, cut(random, body)), donor.subarray(cut(random, donor))),
  'take another': (_body, _random, donor) => donor,
  'append another': (body, _random, donor) => join(body, donor),
  empty: () => new Uint8Array(),
  huge: (body, random) => (random.chance(HUGE_CHANCE) ? join(body, Buffer.alloc(HUGE_BYTES, 0x20)) : join(body, Buffer.alloc(64, 0x20))),
}

/** Changes that keep the meaning of the JSON, or nearly so, in other bytes. */
export const REWRITTEN: Readonly<Record<string, (text: string) => Uint8Array | string>> = {
  're-serialized': (text) => JSON.stringify(JSON.parse(text)),
  indented: (text) => JSON.stringify(JSON.parse(text), null, 2),
  'members in another order': (text) => JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(text)).reverse())),
  'white space around': (text) => ` ${text}\n`,
  trimmed: (text) => text.trim(),
  'a trailing newline': (text) => `${text}\n`,
  'a leading byte order mark': (text) => `\ufeff${text}`,
  'other line ends': (text) => text.replaceAll(',', ',\r\n'),
  'escapes decoded': (text) => text.replace(/\\u([0-9a-f]{4})/gi, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
  'escapes in upper case': (text) => text.replace(/\\u[0-9a-f]{4}/g, (unit) => `\\u${unit.slice(2).toUpperCase()}`),
  'slashes escaped': (text) => text.replaceAll('/', '\\/'),
  composed: (text) => text.normalize('NFC'),
  decomposed: (text) => text.normalize('NFD'),
  'in UTF-16': (text) => Buffer.from(text, 'utf16le'),
  'in Latin-1': (text) => Buffer.from(text, 'latin1'),
  'in upper case': (text) => text.toUpperCase(),
  'in base64': (text) => Buffer.from(text).toString('base64'),
  'as a form': (text) => `payload=${encodeURIComponent(text)}`,
  'an additional member': (text) => text.replace(/^\{/, '{"a":1,'),
  'a repeated member': (text) => text.replace(/^\{("[^"]*")/, '{$1:0,$1'),
}

const EDITS = Object.entries(edits)
const REWRITES = Object.entries(REWRITTEN)

/** Applies a change to the text of the body; returns the body unchanged if the change needs JSON and the body is not JSON. */
export function rewrite(body: Uint8Array, how: (text: string) => Uint8Array | string): Uint8Array {
  try {
    const written = how(textOf(body))
    return typeof written === 'string' ? Buffer.from(written) : written
  } catch {
    return body
  }
}

/** Returns a changed body and the name of the change, which may by chance have no effect. */
export function mutateBytes(body: Uint8Array, random: Random, donor: Uint8Array): { readonly name: string; readonly body: Uint8Array } {
  if (random.chance(0.4)) {
    const [name, how] = random.pick(REWRITES)
    return { name, body: rewrite(body, how) }
  }
  const [name, mutate] = random.pick(EDITS)
  return { name, body: mutate(body, random, donor) }
}
