/** Builds seccomp filters: programs of classic BPF that decide about each system call. */

/** An operation, the number of instructions to skip if its test holds and if it does not, and a value. */
export type FilterInstruction = readonly [operation: number, skipIfTrue: number, skipIfFalse: number, value: number]

const LOAD = 0x20
const RETURN = 0x06
export const IF_EQUAL = 0x15
export const IF_AT_LEAST = 0x35
export const IF_ANY_BIT = 0x45

/** The offset of the call's number in `struct seccomp_data`. */
export const NUMBER_AT = 0
/** The offset of the architecture in `struct seccomp_data`. */
export const ARCH_AT = 4
/** Returns the offset of an argument's low 32 bits. Both supported machines are little-endian. */
export const argumentAt = (index: number): number => 16 + 8 * index

/** The verdict that runs the call. */
export const ALLOW = 0x7fff0000
/** Returns the verdict that makes the call fail with this error number. */
export const failWith = (errno: number): number => 0x00050000 | errno

/** The verdict that passes the call to the process which listens to the filter. */
export const NOTIFY = 0x7fc00000

export const load = (offset: number): FilterInstruction => [LOAD, 0, 0, offset]
export const returns = (verdict: number): FilterInstruction => [RETURN, 0, 0, verdict >>> 0]
/** Returns the verdict if the test of the loaded value holds. */
export const returnsIf = (test: number, value: number, verdict: number): readonly FilterInstruction[] => [
  [test, 0, 1, value],
  returns(verdict),
]
/** Runs `body`, which must end in a return, for the call of this number. */
export const forCall = (number: number, body: readonly FilterInstruction[]): readonly FilterInstruction[] => [
  [IF_EQUAL, 0, body.length, number],
  ...body,
]

/** Encodes a program as an array of `struct sock_filter`. */
export function assembleFilter(program: readonly FilterInstruction[]): Uint8Array {
  const bytes = new DataView(new ArrayBuffer(program.length * 8))
  for (const [index, [operation, skipIfTrue, skipIfFalse, value]] of program.entries()) {
    bytes.setUint16(index * 8, operation, true)
    bytes.setUint8(index * 8 + 2, skipIfTrue)
    bytes.setUint8(index * 8 + 3, skipIfFalse)
    bytes.setUint32(index * 8 + 4, value >>> 0, true)
  }
  return new Uint8Array(bytes.buffer)
}
