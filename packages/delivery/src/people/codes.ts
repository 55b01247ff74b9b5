/** The one-time codes that link two accounts: random, short-lived, used once, and kept as a hash. */
import { randomBytes } from 'node:crypto'
import { roomAtMs } from '@sluice/kit'
import { equalTexts, sha256Hex } from '@sluice/sdk'
import * as v from 'valibot'

/** Base 32 without the letters and digits that look alike: 50 bits in 10 characters. */
const ALPHABET = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789'
const CODE_CHARS = 10
export const CODE_MINUTES = 10
/** The codes that are open at the same time, one for each account. */
export const CODES_MAX = 100
/** The wrong codes that one account, and all accounts together, may type within an hour. */
export const TRIES_OF_ACCOUNT_MAX = 5
export const TRIES_MAX = 100
/** The codes that one account, and all accounts together, may make within an hour. Each is in the audit log. */
export const CODES_OF_ACCOUNT_MAX = 10
export const CODES_AN_HOUR_MAX = 300
/** The window in which codes and tries count. */
export const HOUR_MS = 3_600_000

export const addressSchema = v.object({ to: v.string(), thread: v.exactOptional(v.string()) })

export const codeSchema = v.object({
  /** The account that asked for the code. */
  account: v.string(),
  name: v.exactOptional(v.string()),
  /** The conversation that asked for the code. It gets a message when the code is used. */
  to: v.exactOptional(addressSchema),
  hash: v.string(),
  untilMs: v.number(),
})
export type OpenCode = v.InferOutput<typeof codeSchema>

/** A wrong code that an account typed, or a code that it made. */
export const trySchema = v.object({ account: v.string(), atMs: v.number() })
export type CountedCode = v.InferOutput<typeof trySchema>

/** Returns a code as people see it, in two groups. */
export function newCode(): string {
  const code = Array.from(randomBytes(CODE_CHARS), (byte) => ALPHABET[byte % ALPHABET.length]).join('')
  return `${code.slice(0, CODE_CHARS / 2)}-${code.slice(CODE_CHARS / 2)}`
}

/** Returns the letters and digits of a typed code; undefined for a text that cannot be a code. Case, spaces and dashes do not count. */
export function codeIn(text: string): string | undefined {
  const code = text.replace(/[\s-]/g, '').toUpperCase()
  return code.length === CODE_CHARS && [...code].every((letter) => ALPHABET.includes(letter)) ? code : undefined
}

export const hashOf = (account: string, code: string): string => sha256Hex(`${account}\0${codeIn(code) ?? ''}`)

/** Returns the open code that a text is. Compares it with every open code in constant time. */
export function matching(codes: readonly OpenCode[], text: string): OpenCode | undefined {
  let found: OpenCode | undefined
  for (const one of codes) if (equalTexts(one.hash, hashOf(one.account, text))) found = one
  return found
}

/** A time further ahead than any code ends means that the clock was set back. */
export const isOpen = ({ untilMs }: OpenCode, nowMs: number): boolean => untilMs > nowMs && untilMs <= nowMs + CODE_MINUTES * 60_000

/** Whether an account may type a further code. */
export const mayTry = (tries: readonly CountedCode[], account: string): boolean =>
  tries.length < TRIES_MAX && tries.filter((one) => one.account === account).length < TRIES_OF_ACCOUNT_MAX

/** Returns when an account may make a further code; undefined when it may now. `others` are the open codes of other accounts. */
export function nextCodeAtMs(made: readonly CountedCode[], others: readonly OpenCode[], account: string): number | undefined {
  const own = made.filter((one) => one.account === account)
  const times = [
    roomAtMs(made, CODES_AN_HOUR_MAX, HOUR_MS),
    roomAtMs(own, CODES_OF_ACCOUNT_MAX, HOUR_MS),
    others.length < CODES_MAX ? undefined : Math.min(...others.map(({ untilMs }) => untilMs)),
  ].filter((atMs) => atMs !== undefined)
  return times.length === 0 ? undefined : Math.max(...times)
}
