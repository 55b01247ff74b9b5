/** System calls as data: a list of them, made one after the other by a launcher just before it becomes the command. */

/** What a call is given: a number, bytes by their address, a filter program, or what earlier calls came to. */
export type Argument =
  | number
  | { readonly bytes: Uint8Array }
  /** Bytes, then the result of the call at this place of the list, as a 32-bit number. */
  | { readonly bytes: Uint8Array; readonly followedBy: number }
  | { readonly filter: Uint8Array }
  | { readonly result: number }

export interface SystemCall {
  /** What a failure is reported as. */
  readonly name: string
  readonly number: number
  readonly args: readonly Argument[]
  /** A failure ends the launcher, unless it `may` fail; `print` shows the result, or the error number below zero, instead. */
  readonly failing?: Failing
}

export type Failing = 'may' | 'must' | 'print'

const MARKS: Readonly<Record<Failing, string>> = { may: '?', must: '!', print: 'p' }

/** A path, or any other text, as the kernel takes it. */
export const text = (value: string): { readonly bytes: Uint8Array } => ({ bytes: Buffer.from(`${value}\0`) })

/** Words of 64 and 32 bits, in the order of both machines. */
export function packed(...words: readonly (readonly [bits: 32 | 64, value: number | bigint])[]): Uint8Array {
  const bytes = Buffer.alloc(words.reduce((total, [bits]) => total + bits / 8, 0))
  let at = 0
  for (const [bits, value] of words) {
    at = bits === 64 ? bytes.writeBigUInt64LE(BigInt(value), at) : bytes.writeUInt32LE(Number(value) >>> 0, at)
  }
  return bytes
}

/** The list in one word: a call a line, its parts between blanks. `launcher.ts` and `perl-launcher.ts` read it. */
export function encodeCalls(calls: readonly SystemCall[]): string {
  return calls.map(({ name, number, args, failing = 'must' }) => [MARKS[failing], name, number, ...args.map(encode)].join(' ')).join('\n')
}

function encode(argument: Argument): string {
  if (typeof argument === 'number') return String(argument)
  if ('result' in argument) return `r${argument.result}`
  if ('filter' in argument) return `f${hex(argument.filter)}`
  return 'followedBy' in argument ? `x${hex(argument.bytes)}r${argument.followedBy}` : `x${hex(argument.bytes)}`
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
