/** Makes wrong signatures: with other secrets, over other bytes, in other orders and by other algorithms. */
import { createHash, createHmac } from 'node:crypto'
import type { Random } from '../random.ts'
import { REWRITTEN, rewrite } from './mutate-bytes.ts'

/** A part of the signed bytes. */
export type Part = string | Uint8Array

/** A secret and the bytes it signs. */
export interface Signed {
  readonly secret: string | Uint8Array
  /** The signed parts in order; the body is the last one. */
  readonly parts: readonly Part[]
}

const OTHER_SECRETS = ['', ' ', '0', 'secret', 'null', 'undefined', '[secret]', '[object Object]', 'changeme'] as const
const REWRITES = Object.values(REWRITTEN)

const hmac = (secret: string | Uint8Array, parts: readonly Part[], algorithm = 'sha256'): Buffer => {
  const mac = createHmac(algorithm, secret)
  for (const part of parts) mac.update(part)
  return mac.digest()
}

type Forgery = (signed: Signed, random: Random) => Buffer

const forgeries: readonly Forgery[] = [
  ({ secret, parts }, random) => hmac(otherSecret(secret, random), parts),
  ({ secret, parts }, random) => hmac(otherSecret(secret, random), parts),
  ({ secret, parts }, random) => hmac(secret, shuffled(parts, random)),
  ({ secret, parts }, random) => {
    const at = random.below(parts.length)
    return hmac(secret, [...parts.slice(0, at), ...parts.slice(at + 1)])
  },
  ({ secret, parts }, random) => {
    const separator = random.pick(['', '.', ':', '-', '\n', ' ', '|'])
    return hmac(
      secret,
      parts.flatMap((part, at) => (part === '.' ? [] : at === 0 ? [part] : [separator, part])),
    )
  },
  ({ secret, parts }, random) => {
    const body = Buffer.from(parts.at(-1) ?? '')
    return hmac(secret, [...parts.slice(0, -1), rewrite(body, random.pick(REWRITES))])
  },
  ({ secret, parts }, random) => hmac(secret, parts, random.pick(['sha1', 'md5', 'sha512', 'sha384', 'sha512-256', 'sha3-256'])),
  ({ secret, parts }, random) => {
    const body = Buffer.concat(parts.map((part) => Buffer.from(part)))
    const plain = random.pick([[body], [secret, body], [body, secret], [secret, body, secret], [secret], []])
    return createHash('sha256')
      .update(Buffer.concat(plain.map((part) => Buffer.from(part))))
      .digest()
  },
  ({ secret, parts }) => hmac(secret, [hmac(secret, parts)]),
  ({ secret, parts }) => hmac(Buffer.concat(parts.map((part) => Buffer.from(part))), [secret]),
  ({ secret, parts }, random) => Buffer.from(hmac(secret, parts).subarray(0, random.below(32))),
  (_signed, random) => Buffer.alloc(32, random.pick([0, 0xff, 0x30])),
  (_signed, random) => Buffer.from(random.bytes(random.pick([0, 1, 20, 31, 32, 33, 64]))),
]

/** Forges a signature of `signed` without the right secret or the right method; the result is never the right signature. */
export function forgeMac(signed: Signed, random: Random): Buffer {
  const right = hmac(signed.secret, signed.parts)
  let mac = right
  while (mac.equals(right)) mac = random.pick(forgeries)(signed, random)
  return mac
}

/** Returns a secret that is similar to this one or a common default. */
export function otherSecret(secret: string | Uint8Array, random: Random): string | Uint8Array {
  const text = typeof secret === 'string' ? secret : Buffer.from(secret).toString('latin1')
  return random.pick<string | Uint8Array>([
    `${text}x`,
    `${text}\n`,
    ` ${text}`,
    text.slice(0, -1),
    text.slice(1),
    text.toUpperCase(),
    text.replace(/\d+$/, (number) => String(Number(number) + 1).padStart(number.length, '0')),
    text.replace(/^whsec_/, ''),
    [...text].reverse().join(''),
    Buffer.from(text).toString('base64'),
    Buffer.from(text).toString('hex'),
    Buffer.from(text, 'base64'),
    createHash('sha256').update(text).digest('hex'),
    createHash('sha256').update(text).digest(),
    ...OTHER_SECRETS,
  ])
}

function shuffled(parts: readonly Part[], random: Random): Part[] {
  const left = [...parts]
  const order: Part[] = []
  while (left.length > 0) order.push(...left.splice(random.below(left.length), 1))
  return order
}
