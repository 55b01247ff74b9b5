/**
 * Rewrites a plugin's module so that it respects its limits: tables and memory cannot grow beyond them, and the code pays for the
 * instructions it runs from a counter that begins at `fuel`. A module with unsupported or forbidden parts is refused.
 */
import { type Arity, boundCompileCost } from './bound-compile-cost.ts'
import { ByteReader } from './byte-reader.ts'
import { encodeI64, encodeName, encodeSection, encodeU32, joined } from './encode.ts'
import { skipTypes } from './instructions.ts'
import { meterCode } from './meter-code.ts'
import { ModuleError, printable } from './module-error.ts'

export interface ModuleLimits {
  readonly memoryMb: number
  /** The approximate number of instructions of one call. */
  readonly fuel: number
  /** The names of the functions that the module may import from `env`. */
  readonly imports: readonly string[]
}

/** The name under which the fuel counter is exported. It is below 0 once the fuel is used up. */
export const FUEL_EXPORT = 'sluice_fuel'
/** The name under which the module imports its memory from `env`. The host creates that memory. */
export const MEMORY_IMPORT = 'sluice_memory'
/** The exports that every plugin must have. */
export const ABI = { memory: 'memory', alloc: 'alloc', run: 'run' } as const

const HEADER = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]
const SECTION = { custom: 0, type: 1, import: 2, function: 3, table: 4, memory: 5, global: 6, export: 7, code: 10 } as const
/** The ids of the supported sections in their required order. */
const ORDER: readonly number[] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11]
const KIND = { function: 0, memory: 2, global: 3 } as const
const FUNCTION_TYPE = 0x60
const PAGES_PER_MB = 16
/** The engine keeps every type of all workers, and ends the whole process when there are a million. */
const TYPES_MAX = 5000
const TABLES_MAX = 16
const EXPORTS_MAX = 10_000
const TABLE_ELEMENTS_MAX = 100_000
const REFERENCE_TYPES = [0x6f, 0x70]

/** A rewritten module, which imports a memory of `pages` as `MEMORY_IMPORT` from `env`. */
export interface Prepared {
  readonly bytes: Uint8Array
  readonly pages: { readonly initial: number; readonly maximum: number }
}

/** Throws `ModuleError`. The engine still has to validate the result. */
export function prepareModule(bytes: Uint8Array, limits: ModuleLimits): Prepared {
  const module = new ByteReader(bytes)
  if (bytes.length < HEADER.length || HEADER.some((byte) => module.byte() !== byte)) throw new ModuleError('is not a WebAssembly module')
  const sections = readSections(module)
  const types = readTypes(contentOf(sections, SECTION.type))
  const imports = readImports(contentOf(sections, SECTION.import), limits.imports)
  const functions = [...imports, ...readFunctions(contentOf(sections, SECTION.function))]
  const pages = memoryPages(contentOf(sections, SECTION.memory), limits.memoryMb * PAGES_PER_MB)
  const rewritten = rewriteSections(sections, pages, limits.fuel)
  boundCompileCost(contentOf(sections, SECTION.code), { types, functions })
  const inOrder = ORDER.flatMap((id) => {
    const content = rewritten.get(id)
    return content ? [encodeSection(id, content)] : []
  })
  return { bytes: joined([HEADER, ...inOrder]), pages }
}

type Sections = ReadonlyMap<number, Uint8Array>

/** Returns a reader of a section. A missing section reads like an empty list. */
const contentOf = (sections: Sections, id: number): ByteReader => new ByteReader(sections.get(id) ?? Uint8Array.of(0))

/** Imports the memory instead of declaring it, bounds the tables, and adds the fuel counter and the code that charges it. */
function rewriteSections(sections: Sections, pages: Prepared['pages'], fuel: number): Sections {
  const rewritten = new Map(sections)
  rewritten.delete(SECTION.memory)
  rewritten.set(SECTION.import, importMemory(contentOf(sections, SECTION.import), pages))
  if (sections.has(SECTION.table)) rewritten.set(SECTION.table, boundTables(contentOf(sections, SECTION.table)))
  // The counter is the last global, so the indices of the others do not change.
  const fuelGlobal = contentOf(sections, SECTION.global).u32()
  rewritten.set(SECTION.global, addFuelGlobal(contentOf(sections, SECTION.global), fuel))
  rewritten.set(SECTION.export, addFuelExport(contentOf(sections, SECTION.export), fuelGlobal))
  if (sections.has(SECTION.code)) rewritten.set(SECTION.code, meterCode(contentOf(sections, SECTION.code), fuelGlobal))
  return rewritten
}

/** Returns the sections by id. Leaves custom sections out, because some refer to offsets in the code, which change. */
function readSections(module: ByteReader): Sections {
  const sections = new Map<number, Uint8Array>()
  let last = -1
  while (!module.isAtEnd) {
    const id = module.byte()
    const content = module.take(module.u32())
    if (id === SECTION.custom) continue
    const place = ORDER.indexOf(id)
    if (place < 0) throw new ModuleError(`has an unsupported section of kind ${id}`)
    if (place <= last) throw new ModuleError('has its sections in the wrong order')
    last = place
    sections.set(id, content)
  }
  return sections
}

/** Returns the number of parameters and results of each function type. Refuses every other type. */
function readTypes(section: ByteReader): readonly Arity[] {
  const count = section.u32()
  if (count > TYPES_MAX) throw new ModuleError(`has more than ${TYPES_MAX} types`)
  return Array.from({ length: count }, () => {
    if (section.byte() !== FUNCTION_TYPE) throw new ModuleError('has an unsupported type')
    return { parameters: typeCount(section), results: typeCount(section) }
  })
}

/** Reads a list of value types and returns its length. */
function typeCount(section: ByteReader): number {
  const { at } = section
  const count = section.u32()
  section.at = at
  skipTypes(section)
  return count
}

/** Returns the type indices of the imported functions. Refuses every other import. */
function readImports(section: ByteReader, allowed: readonly string[]): readonly number[] {
  const types: number[] = []
  for (let left = section.u32(); left > 0; left--) {
    const [from, name] = [section.name(), section.name()]
    const kind = section.byte()
    if (from !== 'env' || kind !== KIND.function || !allowed.includes(name)) {
      throw new ModuleError(`imports '${printable(from)}.${printable(name)}', which is not available to plugins`)
    }
    types.push(section.u32())
  }
  return types
}

/** Returns the type indices of the module's own functions. */
function readFunctions(section: ByteReader): readonly number[] {
  const types: number[] = []
  for (let left = section.u32(); left > 0; left--) types.push(section.u32())
  return types
}

/** Appends the import of the memory. It is the module's only memory, so no index changes. */
function importMemory(section: ByteReader, { initial, maximum }: Prepared['pages']): Uint8Array {
  const memory = [KIND.memory, 0x01, ...encodeU32(initial), ...encodeU32(maximum)]
  return joined([encodeU32(section.u32() + 1), section.rest(), encodeName('env'), encodeName(MEMORY_IMPORT), memory])
}

/** Reads the limits of a table or memory and lowers the maximum to `max`. `what` names it in messages. */
function readLimits(section: ByteReader, max: number, what: string): Prepared['pages'] {
  const flags = section.byte()
  if (flags > 1) throw new ModuleError(`has ${what} of an unsupported kind`)
  const initial = section.u32()
  const declared = flags === 1 ? section.u32() : max
  if (initial > max) throw new ModuleError(`needs more ${what} than the limit allows`)
  return { initial, maximum: Math.max(initial, Math.min(declared, max)) }
}

/** Returns the size of the module's only memory in pages. */
function memoryPages(section: ByteReader, pagesMax: number): Prepared['pages'] {
  if (section.u32() !== 1) throw new ModuleError('does not have one memory of its own')
  return readLimits(section, pagesMax, 'memory')
}

/** Returns the content of the table section with bounded sizes. */
function boundTables(section: ByteReader): Uint8Array {
  const count = section.u32()
  if (count > TABLES_MAX) throw new ModuleError(`has more than ${TABLES_MAX} tables`)
  const tables = Array.from({ length: count }, () => {
    const type = section.byte()
    if (!REFERENCE_TYPES.includes(type)) throw new ModuleError('uses typed references, which are not supported')
    const { initial, maximum } = readLimits(section, TABLE_ELEMENTS_MAX, 'table elements')
    return [type, 0x01, ...encodeU32(initial), ...encodeU32(maximum)]
  })
  return joined([encodeU32(count), ...tables])
}

/** Appends a mutable global of 64 bits that begins at `fuel`. */
function addFuelGlobal(section: ByteReader, fuel: number): Uint8Array {
  const [i64, mutable, i64Const, end] = [0x7e, 0x01, 0x42, 0x0b]
  return joined([encodeU32(section.u32() + 1), section.rest(), [i64, mutable, i64Const, ...encodeI64(fuel), end]])
}

/** Checks the exports and adds the global with the index `fuelGlobal` as `FUEL_EXPORT`. */
function addFuelExport(section: ByteReader, fuelGlobal: number): Uint8Array {
  const count = section.u32()
  if (count > EXPORTS_MAX) throw new ModuleError(`has more than ${EXPORTS_MAX} exports`)
  const { at } = section
  const kinds = new Map<string, number>()
  for (let index = 0; index < count; index++) {
    const name = section.name()
    kinds.set(name, section.byte())
    section.u32()
  }
  if (kinds.has(FUEL_EXPORT)) throw new ModuleError(`exports '${FUEL_EXPORT}', which is a reserved name`)
  for (const name of Object.values(ABI)) {
    const wanted = name === ABI.memory ? KIND.memory : KIND.function
    if (kinds.get(name) !== wanted) throw new ModuleError(`does not export the ${wanted === KIND.memory ? 'memory' : 'function'} '${name}'`)
  }
  section.at = at
  return joined([encodeU32(count + 1), section.rest(), encodeName(FUEL_EXPORT), [KIND.global], encodeU32(fuelGlobal)])
}
