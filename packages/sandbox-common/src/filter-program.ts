/** Programs that filter system calls, as the kernel takes them: instructions, and what is built of them. */

/** Operation, how many to skip if so and if not, value. */
export type FilterInstruction = readonly [operation: number, skipIfSo: number, skipIfNot: number, value: number]

const LOAD = 0x20
const RETURN = 0x06
export const IF_EQUAL = 0x15
export const IF_AT_LEAST = 0x35
export const IF_ANY_BIT = 0x45

/** Of `struct seccomp_data`. */
export const NUMBER_AT = 0
export const ARCH_AT = 4
/** The low half: both machines count it first. */
export const argumentAt = (index: number): number => 16 + 8 * index

export const ALLOW = 0x7fff0000
/** The call fails with this error number. */
export const refuse = (errno: number): number => 0x00050000 | errno

export const load = (at: number): FilterInstruction => [LOAD, 0, 0, at]
export const give = (result: number): FilterInstruction => [RETURN, 0, 0, result >>> 0]
export const when = (test: number, value: number, result: number): readonly FilterInstruction[] => [[test, 0, 1, value], give(result)]
/** Runs `body`, which ends in a return, for one call. */
export const forCall = (number: number, body: readonly FilterInstruction[]): readonly FilterInstruction[] => [
  [IF_EQUAL, 0, body.length, number],
  ...body,
]

export function assembleFilter(program: readonly FilterInstruction[]): Uint8Array {
  const bytes = new DataView(new ArrayBuffer(program.length * 8))
  for (const [index, [operation, skipIfSo, skipIfNot, value]] of program.entries()) {
    bytes.setUint16(index * 8, operation, true)
    bytes.setUint8(index * 8 + 2, skipIfSo)
    bytes.setUint8(index * 8 + 3, skipIfNot)
    bytes.setUint32(index * 8 + 4, value >>> 0, true)
  }
  return new Uint8Array(bytes.buffer)
}
