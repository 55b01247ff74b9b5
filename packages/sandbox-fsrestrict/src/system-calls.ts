/** System calls as data: a list that a launcher executes in order before it becomes the command. */

/** An argument of a call: a number, the address of bytes, a filter program, or the result of an earlier call. */
export type Argument =
  | number
  | { readonly bytes: Uint8Array }
  /** Bytes, followed by the result of the call at this index of the list as a 32-bit number. */
  | { readonly bytes: Uint8Array; readonly followedBy: number }
  | { readonly filter: Uint8Array }
  | { readonly result: number }

export interface SystemCall {
  /** The name of the call in error messages. */
  readonly name: string
  readonly number: number
  readonly args: readonly Argument[]
  /** With `must`, the default, a failure ends the launcher. With `print`, it prints the result or the negative error number. */
  readonly failing?: Failing
}

/** A call that changes an attribute of a file. The numbers are indexes of its arguments. */
export interface AttributeCall {
  readonly number: number
  /** The attribute, and for times the form in which they are given. */
  readonly changes: 'mode' | 'owner' | 'seconds' | 'microseconds' | 'nanoseconds'
  /** The argument with the folder of a relative path, or with the file itself if the call has no path. */
  readonly folder?: number
  readonly path?: number
  /** The argument with the new value; the group of an owner is the argument after it. */
  readonly value: number
  readonly flags?: number
  /** The call changes a link itself. */
  readonly isOfLink?: true
}

export type Failing = 'may' | 'must' | 'print'

const MARKS: Readonly<Record<Failing, string>> = { may: '?', must: '!', print: 'p' }

/** Encodes a text as bytes with a terminating zero. */
export const text = (value: string): { readonly bytes: Uint8Array } => ({ bytes: Buffer.from(`${value}\0`) })

/** Packs words of 64 and 32 bits in little-endian order, which all supported machines use. */
export function packed(...words: readonly (readonly [bits: 32 | 64, value: number | bigint])[]): Uint8Array {
  const bytes = Buffer.alloc(words.reduce((total, [bits]) => total + bits / 8, 0))
  let at = 0
  for (const [bits, value] of words) {
    at = bits === 64 ? bytes.writeBigUInt64LE(BigInt(value), at) : bytes.writeUInt32LE(Number(value) >>> 0, at)
  }
  return bytes
}

/** Encodes a list of calls, one in each line with its parts between blanks. `node-launcher.ts` and `perl-launcher.ts` decode it. */
export function encodeCalls(calls: readonly SystemCall[]): string {
  return calls.map(({ name, number, args, failing = 'must' }) => [MARKS[failing], name, number, ...args.map(encode)].join(' ')).join('\n')
}

function encode(argument: Argument): string {
  if (typeof argument === 'number') return String(argument)
  if ('result' in argument) return `r${argument.result}`
  if ('filter' in argument) return `f${hex(argument.filter)}`
  return 'followedBy' in argument ? `x${hex(argument.bytes)}r${argument.followedBy}` : `x${hex(argument.bytes)}`
}

export const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
