/** Builds WebAssembly modules byte by byte, including ones that no compiler would produce. */
import { encodeName, encodeSection, encodeU32, joined } from '../wasm/encode.ts'

export type Bytes = readonly number[] | Uint8Array

const vector = (items: readonly Bytes[]): Uint8Array => joined([encodeU32(items.length), ...items])

export const HEADER = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]
export const custom = (name: string, content: Bytes): Uint8Array => encodeSection(0, joined([encodeName(name), content]))
export const importOf = (from: string, name: string, kind: Bytes = [0, 2]): Uint8Array => joined([encodeName(from), encodeName(name), kind])
export const exportOf = (name: string, kind: number, index: number): Uint8Array => joined([encodeName(name), [kind], encodeU32(index)])
/** Makes a function body without locals. */
export const body = (...code: readonly number[]): Uint8Array => repeatedBody(code, 1)
/** Makes a function body that repeats the code `times` times. */
export const repeatedBody = (code: readonly number[], times: number): Uint8Array =>
  joined([encodeU32(code.length * times + 2), [0], ...Array.from({ length: times }, () => code), [0x0b]])

export interface ModuleParts {
  readonly imports?: readonly Uint8Array[]
  readonly memories?: readonly Bytes[]
  readonly tables?: readonly Bytes[]
  readonly exports?: readonly Uint8Array[]
  /** Whole function bodies, normally of `alloc` and `run`. */
  readonly bodies?: readonly Uint8Array[]
  readonly types?: readonly Bytes[]
  readonly functions?: readonly Bytes[]
  /** Whole sections in front of the exports, after them, or at the end. */
  readonly before?: readonly Uint8Array[]
  readonly afterExports?: readonly Uint8Array[]
  readonly after?: readonly Uint8Array[]
}

const TYPES: readonly Bytes[] = [
  [0x60, 1, 0x7f, 1, 0x7f], // i32 → i32
  [0x60, 2, 0x7f, 0x7f, 1, 0x7e], // (i32, i32) → i64
  [0x60, 0, 0], // nothing
]

export const ALLOC = body(0x41, 0)
export const ECHO = body(0x20, 0, 0xad, 0x42, 0x20, 0x86, 0x20, 1, 0xad, 0x84)

/** Makes a plugin whose `run` returns its input, with the given parts replaced. */
export function moduleOf(parts: ModuleParts = {}): Uint8Array {
  const {
    imports = [],
    memories = [[0, 1]],
    tables,
    types = TYPES,
    functions = [[0], [1]],
    before = [],
    afterExports = [],
    after = [],
  } = parts
  const first = imports.length
  const { exports = [exportOf('memory', 2, 0), exportOf('alloc', 0, first), exportOf('run', 0, first + 1)], bodies = [ALLOC, ECHO] } = parts
  return joined([
    HEADER,
    encodeSection(1, vector(types)),
    ...(imports.length > 0 ? [encodeSection(2, vector(imports))] : []),
    encodeSection(3, vector(functions)),
    ...(tables ? [encodeSection(4, vector(tables))] : []),
    encodeSection(5, vector(memories)),
    ...before,
    encodeSection(7, vector(exports)),
    ...afterExports,
    encodeSection(10, vector(bodies)),
    ...after,
  ])
}
