/**
 * The supported instructions: the immediates that follow each opcode, and its effect on the height of the stack. Code can only be
 * walked when all of its instructions are known, so an instruction that is not listed here is refused.
 */
import type { ByteReader } from './byte-reader.ts'
import { ModuleError } from './module-error.ts'

export const OPCODE = {
  unreachable: 0x00,
  block: 0x02,
  loop: 0x03,
  if: 0x04,
  else: 0x05,
  end: 0x0b,
  branch: 0x0c,
  branchIf: 0x0d,
  branchTable: 0x0e,
  return: 0x0f,
  call: 0x10,
  callIndirect: 0x11,
  tailCall: 0x12,
  tailCallIndirect: 0x13,
  getGlobal: 0x23,
  setGlobal: 0x24,
  prefix: 0xfc,
} as const

const I32_BYTES_MAX = 5
const I64_BYTES_MAX = 10
/** From this value on, the alignment of a memory access has flags that select a memory. */
const ALIGNMENT_FLAGS = 64
/** Reference types that are followed by a heap type. */
const LONG_TYPES = [0x63, 0x64]
const REFERENCE_TYPES = [0x6f, 0x70]

type Skip = (code: ByteReader) => void

const none: Skip = () => {}
const index: Skip = (code) => code.u32()
const twoIndices: Skip = (code) => {
  code.u32()
  code.u32()
}

const shortType: Skip = (code) => {
  if (LONG_TYPES.includes(code.byte())) throw new ModuleError('uses typed references, which are not supported')
}

const blockType: Skip = (code) => {
  const { at } = code
  shortType(code)
  code.at = at
  code.skipNumber(I32_BYTES_MAX)
}

const access: Skip = (code) => {
  if (code.u32() >= ALIGNMENT_FLAGS) throw new ModuleError('uses more than one memory')
  code.u32()
}

const branchTable: Skip = (code) => {
  for (let targets = code.u32() + 1; targets > 0; targets--) code.u32()
}

/** Skips a list of value types. */
export const skipTypes: Skip = (code) => {
  for (let count = code.u32(); count > 0; count--) shortType(code)
}

const heapType: Skip = (code) => {
  if (!REFERENCE_TYPES.includes(code.byte())) throw new ModuleError('uses typed references, which are not supported')
}

/** The instructions after the prefix 0xfc, by operation. */
const PREFIXED: readonly Skip[] = [
  ...Array.from({ length: 8 }, () => none), // saturating conversions
  twoIndices, // memory.init
  index, // data.drop
  twoIndices, // memory.copy
  index, // memory.fill
  twoIndices, // table.init
  index, // elem.drop
  twoIndices, // table.copy
  index, // table.grow
  index, // table.size
  index, // table.fill
]

const prefixed: Skip = (code) => {
  const operation = code.u32()
  const skip = PREFIXED[operation]
  if (!skip) throw unsupported(`0xfc ${operation}`)
  skip(code)
}

const unsupported = (opcode: string): ModuleError => new ModuleError(`uses the unsupported instruction ${opcode}`)

/** The immediates of the opcodes from `first` to `last`. */
const IMMEDIATES: readonly (readonly [first: number, last: number, skip: Skip])[] = [
  [0x00, 0x01, none], // unreachable, nop
  [0x02, 0x04, blockType], // block, loop, if
  [0x05, 0x05, none], // else
  [0x0b, 0x0b, none], // end
  [0x0c, 0x0d, index], // br, br_if
  [0x0e, 0x0e, branchTable],
  [0x0f, 0x0f, none], // return
  [0x10, 0x10, index], // call
  [0x11, 0x11, twoIndices], // call_indirect
  [0x12, 0x12, index], // return_call
  [0x13, 0x13, twoIndices], // return_call_indirect
  [0x1a, 0x1b, none], // drop, select
  [0x1c, 0x1c, skipTypes], // select with types
  [0x20, 0x26, index], // variables and tables
  [0x28, 0x3e, access], // loads and stores
  [0x3f, 0x40, index], // memory.size, memory.grow
  [0x41, 0x41, (code) => code.skipNumber(I32_BYTES_MAX)],
  [0x42, 0x42, (code) => code.skipNumber(I64_BYTES_MAX)],
  [0x43, 0x43, (code) => code.skip(4)],
  [0x44, 0x44, (code) => code.skip(8)],
  [0x45, 0xc4, none], // numbers
  [0xd0, 0xd0, heapType], // ref.null
  [0xd1, 0xd1, none], // ref.is_null
  [0xd2, 0xd2, index], // ref.func
  [0xfc, 0xfc, prefixed],
]

const SKIP_BY_OPCODE: readonly (Skip | undefined)[] = Array.from(
  { length: 256 },
  (_, opcode) => IMMEDIATES.find(([first, last]) => opcode >= first && opcode <= last)?.[2],
)

/** Skips the immediates of `opcode`, which the caller has just read. Throws `ModuleError` for an unsupported instruction. */
export function skipImmediates(opcode: number, code: ByteReader): void {
  const skip = SKIP_BY_OPCODE[opcode]
  if (!skip) throw unsupported(`0x${opcode.toString(16)}`)
  skip(code)
}

/**
 * How many values the opcodes from `first` to `last` push minus how many they pop. Opcodes that are not listed have no effect, or
 * one that depends on a type.
 */
const STACK_EFFECTS: readonly (readonly [first: number, last: number, effect: number])[] = [
  [0x04, 0x04, -1], // if
  [0x0d, 0x0d, -1], // br_if
  [0x11, 0x11, -1], // call_indirect: the index of the function
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
  [0x46, 0x4f, -1], // i32 comparisons of two numbers
  [0x51, 0x66, -1], // i64, f32 and f64 comparisons of two numbers
  [0x6a, 0x78, -1], // i32 operations on two numbers
  [0x7c, 0x8a, -1], // i64 operations on two numbers
  [0x92, 0x98, -1], // f32 operations on two numbers
  [0xa0, 0xa6, -1], // f64 operations on two numbers
  [0xd0, 0xd0, 1], // ref.null
  [0xd2, 0xd2, 1], // ref.func
]

const EFFECT_BY_OPCODE: readonly number[] = Array.from(
  { length: 256 },
  (_, opcode) => STACK_EFFECTS.find(([first, last]) => opcode >= first && opcode <= last)?.[2] ?? 0,
)

/** The effects of the instructions after the prefix 0xfc, by operation: eight conversions, then memory and tables. */
const PREFIXED_EFFECTS: readonly number[] = [0, 0, 0, 0, 0, 0, 0, 0, -3, 0, -3, -3, -3, 0, -3, -1, 1, -3]

export const stackEffect = (opcode: number): number => EFFECT_BY_OPCODE[opcode] ?? 0
export const prefixedStackEffect = (operation: number): number => PREFIXED_EFFECTS[operation] ?? 0
