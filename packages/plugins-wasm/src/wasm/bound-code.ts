/**
 * Bounds what each function costs the engine to compile, which no limit of a call does: at every block and branch it notes
 * anew where each local and each value on the stack is. So a small module could take all the memory there is.
 */
import { ByteReader } from './byte-reader.ts'
import { ModuleError } from './module-error.ts'
import { OPCODE, skipImmediates } from './skip-immediates.ts'
import { prefixedStackEffect, stackEffect } from './stack-effect.ts'

/** How many values a function or block takes and gives. */
export interface Arity {
  readonly takes: number
  readonly gives: number
}

export interface Signatures {
  readonly types: readonly Arity[]
  /** The type of each function, those that are imported first. */
  readonly functions: readonly number[]
}

interface Block extends Arity {
  /** How many values lie below it. */
  readonly base: number
}

const FUNCTION_BYTES_MAX = 1_048_576
/** Of one function: some hundred megabytes. The largest function of a whole Python interpreter needs 50,000. */
const NOTES_MAX = 20_000_000
const NOTHING: Arity = { takes: 0, gives: 0 }
const NO_TYPE = 0x40
/** A block type above this is one value; up to it, it is an index. */
const ONE_BYTE_INDEX_MAX = 0x3f

/** Of the content of a code section. Throws `ModuleError`. */
export function boundCode(section: ByteReader, signatures: Signatures): void {
  const count = section.u32()
  const imported = signatures.functions.length - count
  for (let index = 0; index < count; index++) {
    const body = section.take(section.u32())
    if (body.length > FUNCTION_BYTES_MAX) throw new ModuleError(`has a function of more than ${FUNCTION_BYTES_MAX} bytes`)
    if (notesOf(new ByteReader(body), arityOf(signatures, imported + index), signatures) > NOTES_MAX)
      throw new ModuleError('has a function with too many values for its branches')
  }
}

const arityOf = ({ types, functions }: Signatures, index: number): Arity => types[functions[index] ?? -1] ?? NOTHING

function notesOf(code: ByteReader, { takes, gives }: Arity, signatures: Signatures): number {
  let locals = takes
  for (let groups = code.u32(); groups > 0; groups--) {
    locals += code.u32()
    code.byte()
  }
  const open: Block[] = [{ base: 0, takes: 0, gives }]
  let height = 0
  let notes = 0
  for (let block = open.at(-1); block; block = open.at(-1)) {
    const opcode = code.byte()
    const { at } = code
    const { base } = block
    const pop = (count: number) => Math.max(base, height - count)
    if (opcode === OPCODE.end) {
      height = base + block.gives
      open.pop()
    } else if (opcode === OPCODE.else) {
      notes += locals + height
      height = base + block.takes
    } else if (opcode === OPCODE.block || opcode === OPCODE.loop || opcode === OPCODE.if) {
      notes += locals + height
      const arity = blockArity(code, signatures)
      const inner = pop(arity.takes - stackEffect(opcode))
      open.push({ base: inner, ...arity })
      height = inner + arity.takes
    } else if (opcode === OPCODE.call || opcode === OPCODE.callIndirect) {
      const called = opcode === OPCODE.call ? arityOf(signatures, code.u32()) : (signatures.types[code.u32()] ?? NOTHING)
      height = pop(called.takes - stackEffect(opcode)) + called.gives
    } else if (ENDS.includes(opcode)) {
      notes += (locals + height) * (opcode === OPCODE.branchTable ? Math.min(code.u32() + 1, open.length) : 1)
      height = base
    } else {
      if (opcode === OPCODE.branchIf) notes += locals + height
      height = pop(opcode === OPCODE.prefix ? -prefixedStackEffect(code.u32()) : -stackEffect(opcode))
    }
    code.at = at
    skipImmediates(opcode, code)
  }
  return notes
}

/** What control does not go beyond. */
const ENDS: readonly number[] = [
  OPCODE.unreachable,
  OPCODE.branch,
  OPCODE.branchTable,
  OPCODE.return,
  OPCODE.tailCall,
  OPCODE.tailCallIndirect,
]

/** `code` stands at the block's type. */
function blockArity(code: ByteReader, { types }: Signatures): Arity {
  const { at } = code
  const first = code.byte()
  if (first === NO_TYPE) return NOTHING
  if (first > ONE_BYTE_INDEX_MAX && first < 0x80) return { takes: 0, gives: 1 }
  code.at = at
  return types[code.u32()] ?? NOTHING
}
