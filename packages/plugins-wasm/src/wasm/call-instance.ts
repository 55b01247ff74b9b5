/** One call of a plugin, in an instance of its own: text in, text out. Runs in the plugin's worker. */
import { Instance, Memory, Module, type WasmMemory, type WasmModule } from './engine.ts'
import { ModuleError } from './module-error.ts'
import { ABI, FUEL_EXPORT, MEMORY_IMPORT, type ModuleLimits, type Prepared, prepareModule } from './prepare-module.ts'
import { shown } from './shown.ts'

export interface CallLimits {
  readonly inputBytesMax: number
  readonly outputBytesMax: number
}

/** Answers a request of the plugin's, JSON for JSON; undefined: it may make none. */
export type Ask = ((request: string) => string) | undefined

const HTTP_IMPORT = 'sluice_http'
const REQUEST_BYTES_MAX = 1_048_576
const MESSAGE_CHARS_MAX = 500
/** Before a text of AssemblyScript stands how many bytes it has. */
const LENGTH_BYTES = 4
const PAGE_BYTES = 65_536
const REUSED_PAGES_MAX = 16

const encoder = new TextEncoder()
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const utf16 = new TextDecoder('utf-16le')

/** What a plugin may import. */
export const importsFor = (hasNetwork: boolean): readonly string[] => (hasNetwork ? ['abort', HTTP_IMPORT] : ['abort'])

/** A module that can be called, and the memory of its last call where the next can have it. */
export interface Compiled {
  readonly module: WasmModule
  readonly pages: Prepared['pages']
  spare: WasmMemory | undefined
}

/** Throws `ModuleError` for what is refused, by `prepareModule` or by the engine. */
export function compile(bytes: Uint8Array, limits: ModuleLimits): Compiled {
  const prepared = prepareModule(bytes, limits)
  try {
    return { module: new Module(prepared.bytes), pages: prepared.pages, spare: undefined }
  } catch (error) {
    throw new ModuleError(`is not valid: ${messageOf(error)}`)
  }
}

/** Throws `ModuleError` for whatever goes wrong; nothing of the instance is left either way. */
export function callInstance(compiled: Compiled, input: string, limits: CallLimits, ask: Ask): string {
  const given = encoder.encode(input)
  if (given.length > limits.inputBytesMax) throw new ModuleError(`takes at most ${limits.inputBytesMax} bytes of input`)
  const running: Running = { memory: emptyMemory(compiled), alloc: undefined, abort: undefined }
  const env = {
    [MEMORY_IMPORT]: running.memory,
    abort: (message: unknown) => {
      running.abort = abortMessage(running, message)
      throw new ModuleError('aborted')
    },
    ...(ask && {
      [HTTP_IMPORT]: (pointer: number, length: number) => place(running, ask(textAt(running, pointer, length, REQUEST_BYTES_MAX))),
    }),
  }
  let exports: Readonly<Record<string, unknown>> = {}
  try {
    exports = new Instance(compiled.module, { env }).exports
    running.alloc = exports[ABI.alloc] as Running['alloc']
    const at = placeBytes(running, given)
    const answer: unknown = (exports[ABI.run] as (at: number, length: number) => unknown)(at, given.length)
    if (typeof answer !== 'bigint') throw new ModuleError("'run' does not return an i64")
    const packed = BigInt.asUintN(64, answer)
    return textAt(running, Number(packed >> 32n), Number(packed & 0xffff_ffffn), limits.outputBytesMax)
  } catch (error) {
    if (isUsedUp(exports[FUEL_EXPORT])) throw new ModuleError('used up its fuel')
    if (running.abort !== undefined) throw new ModuleError(`failed: ${running.abort}`)
    if (error instanceof ModuleError) throw error
    throw new ModuleError(`failed: ${messageOf(error)}`)
  } finally {
    compiled.spare = running.memory
  }
}

/** What a call leaves is wiped for the next; one that has grown, or is slower to wipe than to make, is not used again. */
function emptyMemory({ pages, spare }: Compiled): WasmMemory {
  if (!spare || pages.initial > REUSED_PAGES_MAX || spare.buffer.byteLength > pages.initial * PAGE_BYTES) return new Memory(pages)
  new Uint8Array(spare.buffer).fill(0)
  return spare
}

interface Running {
  readonly memory: WasmMemory
  alloc: ((length: number) => unknown) | undefined
  /** What it said as it gave up. */
  abort: string | undefined
}

const isUsedUp = (fuel: unknown): boolean =>
  (fuel as { value?: bigint } | undefined)?.value !== undefined && (fuel as { value: bigint }).value < 0n

const place = (running: Running, text: string): bigint => {
  const bytes = encoder.encode(text)
  return BigInt.asIntN(64, (BigInt(placeBytes(running, bytes)) << 32n) | BigInt(bytes.length))
}

/** Copies into memory that the plugin has set aside for it. */
function placeBytes(running: Running, bytes: Uint8Array): number {
  const at = running.alloc?.(bytes.length)
  if (typeof at !== 'number') throw new ModuleError("'alloc' does not return an i32")
  slice(running, at >>> 0, bytes.length).set(bytes)
  return at >>> 0
}

function textAt(running: Running, pointer: number, length: number, bytesMax: number): string {
  const count = length >>> 0
  if (count > bytesMax) throw new ModuleError(`returned ${count} bytes, and ${bytesMax} are allowed`)
  const bytes = slice(running, pointer >>> 0, count)
  try {
    return utf8.decode(bytes)
  } catch {
    throw new ModuleError('returned a text that is not UTF-8')
  }
}

function slice({ memory }: Running, at: number, length: number): Uint8Array {
  if (at + length > memory.buffer.byteLength) throw new ModuleError('pointed outside of its memory')
  return new Uint8Array(memory.buffer, at, length)
}

/** AssemblyScript hands its message over as a pointer to UTF-16; what is none of that gives no message. */
function abortMessage(running: Running, message: unknown): string {
  const unknown = 'it aborted'
  if (typeof message !== 'number' || message >>> 0 < LENGTH_BYTES) return unknown
  try {
    const header = slice(running, (message >>> 0) - LENGTH_BYTES, LENGTH_BYTES)
    const length = new DataView(header.buffer, header.byteOffset, LENGTH_BYTES).getUint32(0, true)
    return utf16.decode(slice(running, message >>> 0, Math.min(length, 2 * MESSAGE_CHARS_MAX))) || unknown
  } catch {
    return unknown
  }
}

/** The engine quotes names the module gives. */
const messageOf = (error: unknown): string => shown(error instanceof Error ? error.message : String(error))
