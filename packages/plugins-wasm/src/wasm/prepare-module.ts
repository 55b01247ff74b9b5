/**
 * Turns a plugin's module into one that keeps to its limits: its tables and the memory it is given cannot grow beyond them,
 * and its code pays for what it runs from a counter that begins at `fuel`. What it may not have, or cannot be metered, is refused.
 */
import { type Arity, boundCode } from './bound-code.ts'
import { ByteReader } from './byte-reader.ts'
import { encodeI64, encodeName, encodeSection, encodeU32, joined } from './encode.ts'
import { meterCode } from './meter-code.ts'
import { ModuleError } from './module-error.ts'
import { shown } from './shown.ts'
import { skipTypes } from './skip-immediates.ts'

export interface ModuleLimits {
  readonly memoryMb: number
  /** Instructions, about. */
  readonly fuel: number
  /** Functions it may import from `env`. */
  readonly imports: readonly string[]
}

/** The exported counter; below 0 once the fuel is used up. */
export const FUEL_EXPORT = 'sluice_fuel'
/** The memory it is given, which it takes for its own. */
export const MEMORY_IMPORT = 'sluice_memory'
/** What a plugin has to export. */
export const ABI = { memory: 'memory', alloc: 'alloc', run: 'run' } as const

const HEADER = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]
const SECTION = { custom: 0, type: 1, import: 2, function: 3, table: 4, memory: 5, global: 6, export: 7, code: 10 } as const
/** The sections as they must follow each other; the number of what is not here is no section plugins can have. */
const ORDER: readonly number[] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11]
const KIND = { function: 0, memory: 2, global: 3 } as const
const FUNCTION_TYPE = 0x60
const PAGES_PER_MB = 16
/** The engine keeps each type it ever saw, for all workers together, and ends the whole process at a million of them. */
const TYPES_MAX = 5000
const TABLES_MAX = 16
const EXPORTS_MAX = 10_000
const TABLE_ELEMENTS_MAX = 100_000
const REFERENCE_TYPES = [0x6f, 0x70]

/** A module that imports its memory from `env`, as `MEMORY_IMPORT`. */
export interface Prepared {
  readonly bytes: Uint8Array
  readonly pages: { readonly initial: number; readonly maximum: number }
}

/** Throws `ModuleError`. What comes back is still to be validated by the engine. */
export function prepareModule(bytes: Uint8Array, limits: ModuleLimits): Prepared {
  const module = new ByteReader(bytes)
  if (bytes.length < HEADER.length || HEADER.some((byte) => module.byte() !== byte)) throw new ModuleError('is no WebAssembly module')
  const sections = readSections(module)
  const contentOf = (id: number) => new ByteReader(sections.get(id) ?? Uint8Array.of(0))
  const types = readTypes(contentOf(SECTION.type))
  const imports = readImports(contentOf(SECTION.import), limits.imports)
  const functions = [...imports, ...readFunctions(contentOf(SECTION.function))]
  const pages = memoryPages(contentOf(SECTION.memory), limits.memoryMb * PAGES_PER_MB)
  const globals = contentOf(SECTION.global)
  const fuel = globals.u32()
  const rewritten = new Map(sections)
  if (sections.has(SECTION.table)) rewritten.set(SECTION.table, boundTables(contentOf(SECTION.table)))
  rewritten.delete(SECTION.memory)
  rewritten.set(SECTION.import, importMemory(contentOf(SECTION.import), pages))
  rewritten.set(SECTION.global, joined([encodeU32(fuel + 1), globals.rest(), [0x7e, 0x01, 0x42, ...encodeI64(limits.fuel), 0x0b]]))
  rewritten.set(SECTION.export, addExport(contentOf(SECTION.export), fuel))
  if (sections.has(SECTION.code)) rewritten.set(SECTION.code, meterCode(contentOf(SECTION.code), fuel))
  boundCode(contentOf(SECTION.code), { types, functions })
  const inOrder = ORDER.flatMap((id) => {
    const content = rewritten.get(id)
    return content ? [encodeSection(id, content)] : []
  })
  return { bytes: joined([HEADER, ...inOrder]), pages }
}

/** By number. Custom sections are left out: some of them speak of places in the code, which move. */
function readSections(module: ByteReader): ReadonlyMap<number, Uint8Array> {
  const sections = new Map<number, Uint8Array>()
  let last = -1
  while (!module.isAtEnd) {
    const id = module.byte()
    const content = module.take(module.u32())
    if (id === SECTION.custom) continue
    const place = ORDER.indexOf(id)
    if (place < 0) throw new ModuleError(`has a section of the kind ${id}, which plugins cannot`)
    if (place <= last) throw new ModuleError('has its sections in the wrong order')
    last = place
    sections.set(id, content)
  }
  return sections
}

function readTypes(section: ByteReader): readonly Arity[] {
  const count = section.u32()
  if (count > TYPES_MAX) throw new ModuleError(`has more than ${TYPES_MAX} types`)
  return Array.from({ length: count }, () => {
    if (section.byte() !== FUNCTION_TYPE) throw new ModuleError('has a type plugins cannot have')
    return { takes: typeCount(section), gives: typeCount(section) }
  })
}

function typeCount(section: ByteReader): number {
  const { at } = section
  const count = section.u32()
  section.at = at
  skipTypes(section)
  return count
}

/** The types of the functions it imports, which is all it may import. */
function readImports(section: ByteReader, allowed: readonly string[]): readonly number[] {
  const types: number[] = []
  for (let left = section.u32(); left > 0; left--) {
    const [from, name] = [section.name(), section.name()]
    const kind = section.byte()
    if (from !== 'env' || kind !== KIND.function || !allowed.includes(name)) {
      throw new ModuleError(`imports '${shown(from)}.${shown(name)}', which plugins are not given`)
    }
    types.push(section.u32())
  }
  return types
}

/** The types of its own functions. */
function readFunctions(section: ByteReader): readonly number[] {
  const types: number[] = []
  for (let left = section.u32(); left > 0; left--) types.push(section.u32())
  return types
}

/** The memory comes last, and is the first and only one: no index changes. */
function importMemory(section: ByteReader, { initial, maximum }: Prepared['pages']): Uint8Array {
  const memory = [KIND.memory, 0x01, ...encodeU32(initial), ...encodeU32(maximum)]
  return joined([encodeU32(section.u32() + 1), section.rest(), encodeName('env'), encodeName(MEMORY_IMPORT), memory])
}

/** The limits of a table or memory, no higher than `max`. */
function readLimits(section: ByteReader, max: number, what: string): Prepared['pages'] {
  const flags = section.byte()
  if (flags > 1) throw new ModuleError(`has ${what} of a kind plugins cannot have`)
  const initial = section.u32()
  const declared = flags === 1 ? section.u32() : max
  if (initial > max) throw new ModuleError(`wants more than its limit of ${what}`)
  return { initial, maximum: Math.max(initial, Math.min(declared, max)) }
}

function memoryPages(section: ByteReader, pagesMax: number): Prepared['pages'] {
  if (section.u32() !== 1) throw new ModuleError('does not have one memory of its own')
  return readLimits(section, pagesMax, 'memory')
}

function boundTables(section: ByteReader): Uint8Array {
  const count = section.u32()
  if (count > TABLES_MAX) throw new ModuleError(`has more than ${TABLES_MAX} tables`)
  const tables = Array.from({ length: count }, () => {
    const type = section.byte()
    if (!REFERENCE_TYPES.includes(type)) throw new ModuleError('uses typed references, which plugins cannot')
    const { initial, maximum } = readLimits(section, TABLE_ELEMENTS_MAX, 'table elements')
    return [type, 0x01, ...encodeU32(initial), ...encodeU32(maximum)]
  })
  return joined([encodeU32(count), ...tables])
}

function addExport(section: ByteReader, fuel: number): Uint8Array {
  const count = section.u32()
  if (count > EXPORTS_MAX) throw new ModuleError(`has more than ${EXPORTS_MAX} exports`)
  const { at } = section
  const kinds = new Map<string, number>()
  for (let index = 0; index < count; index++) {
    const name = section.name()
    kinds.set(name, section.byte())
    section.u32()
  }
  if (kinds.has(FUEL_EXPORT)) throw new ModuleError(`exports '${FUEL_EXPORT}', which is not its own`)
  for (const name of Object.values(ABI)) {
    const wanted = name === ABI.memory ? KIND.memory : KIND.function
    if (kinds.get(name) !== wanted) throw new ModuleError(`does not export the ${wanted === KIND.memory ? 'memory' : 'function'} '${name}'`)
  }
  section.at = at
  return joined([encodeU32(count + 1), section.rest(), encodeName(FUEL_EXPORT), [KIND.global], encodeU32(fuel)])
}
