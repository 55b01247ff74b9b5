/**
 * Turns a plugin's module into one that keeps to its limits: its memory and tables cannot grow beyond them, and its code
 * pays for what it runs from a counter that begins at `fuel`. What it may not have, or cannot be metered, is refused.
 */
import { ByteReader } from './byte-reader.ts'
import { encodeI64, encodeName, encodeSection, encodeU32, joined } from './encode.ts'
import { meterCode } from './meter-code.ts'
import { ModuleError } from './module-error.ts'

export interface ModuleLimits {
  readonly memoryMb: number
  /** Instructions, about. */
  readonly fuel: number
  /** Functions it may import from `env`. */
  readonly imports: readonly string[]
}

/** The exported counter; below 0 once the fuel is used up. */
export const FUEL_EXPORT = 'sluice_fuel'
/** What a plugin has to export. */
export const ABI = { memory: 'memory', alloc: 'alloc', run: 'run' } as const

const HEADER = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]
const SECTION = { custom: 0, import: 2, table: 4, memory: 5, global: 6, export: 7, code: 10 } as const
/** The sections as they must follow each other; the number of what is not here is no section plugins can have. */
const ORDER: readonly number[] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11]
const KIND = { function: 0, memory: 2, global: 3 } as const
const PAGES_PER_MB = 16
const TABLES_MAX = 16
const TABLE_ELEMENTS_MAX = 100_000
const REFERENCE_TYPES = [0x6f, 0x70]

/** Throws `ModuleError`. What comes back is still to be validated by the engine. */
export function prepareModule(bytes: Uint8Array, limits: ModuleLimits): Uint8Array {
  const module = new ByteReader(bytes)
  if (bytes.length < HEADER.length || HEADER.some((byte) => module.byte() !== byte)) throw new ModuleError('is no WebAssembly module')
  const sections = readSections(module)
  const contentOf = (id: number) => new ByteReader(sections.get(id) ?? Uint8Array.of(0))
  checkImports(contentOf(SECTION.import), limits.imports)
  const globals = contentOf(SECTION.global)
  const fuel = globals.u32()
  const rewritten = new Map(sections)
  if (sections.has(SECTION.table)) rewritten.set(SECTION.table, boundTables(contentOf(SECTION.table)))
  rewritten.set(SECTION.memory, boundMemory(contentOf(SECTION.memory), limits.memoryMb * PAGES_PER_MB))
  rewritten.set(SECTION.global, joined([encodeU32(fuel + 1), globals.rest(), [0x7e, 0x01, 0x42, ...encodeI64(limits.fuel), 0x0b]]))
  rewritten.set(SECTION.export, addExport(contentOf(SECTION.export), fuel))
  if (sections.has(SECTION.code)) rewritten.set(SECTION.code, meterCode(contentOf(SECTION.code), fuel))
  const inOrder = ORDER.flatMap((id) => {
    const content = rewritten.get(id)
    return content ? [encodeSection(id, content)] : []
  })
  return joined([HEADER, ...inOrder])
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

function checkImports(section: ByteReader, allowed: readonly string[]): void {
  for (let count = section.u32(); count > 0; count--) {
    const [from, name] = [section.name(), section.name()]
    const kind = section.byte()
    if (from !== 'env' || kind !== KIND.function || !allowed.includes(name)) {
      throw new ModuleError(`imports '${shown(from)}.${shown(name)}', which plugins are not given`)
    }
    section.u32()
  }
}

/** The limits of a table or memory, no higher than `max`. */
function boundLimits(section: ByteReader, max: number, what: string): number[] {
  const flags = section.byte()
  if (flags > 1) throw new ModuleError(`has ${what} of a kind plugins cannot have`)
  const least = section.u32()
  const declared = flags === 1 ? section.u32() : max
  if (least > max) throw new ModuleError(`wants more than its limit of ${what}`)
  return [0x01, ...encodeU32(least), ...encodeU32(Math.max(least, Math.min(declared, max)))]
}

function boundMemory(section: ByteReader, pagesMax: number): Uint8Array {
  if (section.u32() !== 1) throw new ModuleError('does not have one memory of its own')
  return joined([[1], boundLimits(section, pagesMax, 'memory')])
}

function boundTables(section: ByteReader): Uint8Array {
  const count = section.u32()
  if (count > TABLES_MAX) throw new ModuleError(`has more than ${TABLES_MAX} tables`)
  const tables = Array.from({ length: count }, () => {
    const type = section.byte()
    if (!REFERENCE_TYPES.includes(type)) throw new ModuleError('uses typed references, which plugins cannot')
    return [type, ...boundLimits(section, TABLE_ELEMENTS_MAX, 'table elements')]
  })
  return joined([encodeU32(count), ...tables])
}

function addExport(section: ByteReader, fuel: number): Uint8Array {
  const count = section.u32()
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

/** A name of a stranger's, fit for a sentence. */
const shown = (name: string): string => name.replace(/[^\w.:/-]/g, '?').slice(0, 60)
