/**
 * Bounds what the engine needs to compile each function; the limits of a call do not cover this. At every block and branch the
 * engine records the location of each local and each value on the stack, so a small module could use up all memory.
 */
import { ByteReader } from './byte-reader.ts'
import { OPCODE, prefixedStackEffect, skipImmediates, stackEffect } from './instructions.ts'
import { ModuleError } from './module-error.ts'

/** The number of parameters and results of a function or block. */
export interface Arity {
  readonly parameters: number
  readonly results: number
}

export interface Signatures {
  readonly types: readonly Arity[]
  /** The type index of each function, imported functions first. */
  readonly functions: readonly number[]
}

interface Block extends Arity {
  /** The height of the stack below the block's own values. */
  readonly base: number
}

const FUNCTION_BYTES_MAX = 1_048_576
/** Per function; takes some hundred megabytes. The largest function of a complete Python interpreter needs 50,000. */
const RECORDED_VALUES_MAX = 20_000_000
const NO_VALUES: Arity = { parameters: 0, results: 0 }
const EMPTY_BLOCK_TYPE = 0x40
/** Up to this byte a block type is a type index; above it, the type of a single result. */
const ONE_BYTE_INDEX_MAX = 0x3f

/** Checks the content of a code section. Throws `ModuleError`. */
export function boundCompileCost(section: ByteReader, signatures: Signatures): void {
  const count = section.u32()
  const imported = signatures.functions.length - count
  for (let index = 0; index < count; index++) {
    const body = section.take(section.u32())
    if (body.length > FUNCTION_BYTES_MAX) throw new ModuleError(`has a function of more than ${FUNCTION_BYTES_MAX} bytes`)
    if (recordedValues(new ByteReader(body), functionArity(signatures, imported + index), signatures) > RECORDED_VALUES_MAX)
      throw new ModuleError('has a function with too many values for its branches')
  }
}

const functionArity = ({ types, functions }: Signatures, index: number): Arity => types[functions[index] ?? -1] ?? NO_VALUES

/** Returns the sum of locals and stack values over all blocks and branches of a function. `code` is the whole function body. */
function recordedValues(code: ByteReader, { parameters, results }: Arity, signatures: Signatures): number {
  const locals = parameters + code.locals()
  const blocks: Block[] = [{ base: 0, parameters: 0, results }]
  let height = 0
  let recorded = 0
  for (let block = blocks.at(-1); block; block = blocks.at(-1)) {
    const opcode = code.byte()
    const { at } = code
    const { base } = block
    const afterPop = (count: number) => Math.max(base, height - count)
    if (opcode === OPCODE.end) {
      height = base + block.results
      blocks.pop()
    } else if (opcode === OPCODE.else) {
      recorded += locals + height
      height = base + block.parameters
    } else if (opcode === OPCODE.block || opcode === OPCODE.loop || opcode === OPCODE.if) {
      recorded += locals + height
      const arity = blockArity(code, signatures)
      const inner = afterPop(arity.parameters - stackEffect(opcode))
      blocks.push({ base: inner, ...arity })
      height = inner + arity.parameters
    } else if (opcode === OPCODE.call || opcode === OPCODE.callIndirect) {
      const callee = opcode === OPCODE.call ? functionArity(signatures, code.u32()) : (signatures.types[code.u32()] ?? NO_VALUES)
      height = afterPop(callee.parameters - stackEffect(opcode)) + callee.results
    } else if (NEVER_CONTINUES.includes(opcode)) {
      recorded += (locals + height) * (opcode === OPCODE.branchTable ? Math.min(code.u32() + 1, blocks.length) : 1)
      height = base
    } else {
      if (opcode === OPCODE.branchIf) recorded += locals + height
      height = afterPop(opcode === OPCODE.prefix ? -prefixedStackEffect(code.u32()) : -stackEffect(opcode))
    }
    code.at = at
    skipImmediates(opcode, code)
  }
  return recorded
}

/** Instructions after which control does not continue with the next one. */
const NEVER_CONTINUES: readonly number[] = [
  OPCODE.unreachable,
  OPCODE.branch,
  OPCODE.branchTable,
  OPCODE.return,
  OPCODE.tailCall,
  OPCODE.tailCallIndirect,
]

/** Reads a block type, which must be next in `code`. */
function blockArity(code: ByteReader, { types }: Signatures): Arity {
  const { at } = code
  const first = code.byte()
  if (first === EMPTY_BLOCK_TYPE) return NO_VALUES
  if (first > ONE_BYTE_INDEX_MAX && first < 0x80) return { parameters: 0, results: 1 }
  code.at = at
  return types[code.u32()] ?? NO_VALUES
}
