/** How many values each instruction leaves on the stack, less those it takes from there. */

/** By first and last opcode; those whose effect is another each time are not here. */
const RANGES: readonly (readonly [first: number, last: number, effect: number])[] = [
  [0x04, 0x04, -1], // if
  [0x0d, 0x0d, -1], // br_if
  [0x11, 0x11, -1], // call_indirect: where the function is
  [0x1a, 0x1a, -1], // drop
  [0x1b, 0x1c, -2], // select
  [0x20, 0x20, 1], // local.get
  [0x21, 0x21, -1], // local.set
  [0x23, 0x23, 1], // global.get
  [0x24, 0x24, -1], // global.set
  [0x26, 0x26, -2], // table.set
  [0x36, 0x3e, -2], // stores
  [0x3f, 0x3f, 1], // memory.size
  [0x41, 0x44, 1], // constants
  [0x46, 0x4f, -1], // what takes two numbers and gives one, of each type
  [0x51, 0x66, -1],
  [0x6a, 0x78, -1],
  [0x7c, 0x8a, -1],
  [0x92, 0x98, -1],
  [0xa0, 0xa6, -1],
  [0xd0, 0xd0, 1], // ref.null
  [0xd2, 0xd2, 1], // ref.func
]

const BY_OPCODE: readonly number[] = Array.from(
  { length: 256 },
  (_, opcode) => RANGES.find(([first, last]) => opcode >= first && opcode <= last)?.[2] ?? 0,
)

/** Of what follows 0xfc: eight conversions, then memory and tables. */
const PREFIXED: readonly number[] = [0, 0, 0, 0, 0, 0, 0, 0, -3, 0, -3, -3, -3, 0, -3, -1, 1, -3]

export const stackEffect = (opcode: number): number => BY_OPCODE[opcode] ?? 0
export const prefixedStackEffect = (operation: number): number => PREFIXED[operation] ?? 0
