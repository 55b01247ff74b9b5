/** One call of a plugin in an instance of its own: a text in, a text out. Runs in the plugin's worker. */
import { ModuleError, printable } from './module-error.ts'
import { ABI, FUEL_EXPORT, MEMORY_IMPORT, type ModuleLimits, type Prepared, prepareModule } from './prepare-module.ts'

export interface CallLimits {
  readonly inputBytesMax: number
  readonly outputBytesMax: number
}

/** Sends a request of the plugin and returns the answer, both as JSON. Undefined when the plugin may not send requests. */
export type SendRequest = ((request: string) => string) | undefined

/** A compiled module, and the memory of its last call if the next call can reuse it. */
export interface Compiled {
  readonly module: WasmModule
  readonly pages: Prepared['pages']
  spareMemory: WasmMemory | undefined
}

interface WasmModule {
  readonly __module: never
}

interface WasmMemory {
  /** Replaced by a new buffer after each growth. */
  readonly buffer: ArrayBuffer
}

type WasmValues = Readonly<Record<string, unknown>>

/** The part of the engine's interface used here. TypeScript declares it only together with the types of a browser. */
interface Engine {
  readonly Memory: new (pages: { readonly initial: number; readonly maximum: number }) => WasmMemory
  readonly Module: new (bytes: Uint8Array) => WasmModule
  readonly Instance: new (module: WasmModule, imports: Readonly<Record<string, WasmValues>>) => { readonly exports: WasmValues }
}

const engine = (globalThis as unknown as { WebAssembly: Engine }).WebAssembly

const HTTP_IMPORT = 'sluice_http'
const REQUEST_BYTES_MAX = 1_048_576
const MESSAGE_CHARS_MAX = 500
/** AssemblyScript stores the number of bytes of a string in front of it. */
const LENGTH_BYTES = 4
const PAGE_BYTES = 65_536
/** Clearing a larger memory takes longer than creating a new one. */
const REUSED_PAGES_MAX = 16

const encoder = new TextEncoder()
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const utf16 = new TextDecoder('utf-16le')

/** Returns the names of the functions that a plugin may import. */
export const importsFor = (hasNetwork: boolean): readonly string[] => (hasNetwork ? ['abort', HTTP_IMPORT] : ['abort'])

/** Throws `ModuleError` for a module that `prepareModule` or the engine refuses. */
export function compileModule(bytes: Uint8Array, limits: ModuleLimits): Compiled {
  const prepared = prepareModule(bytes, limits)
  try {
    return { module: new engine.Module(prepared.bytes), pages: prepared.pages, spareMemory: undefined }
  } catch (error) {
    throw new ModuleError(`is not valid: ${printableError(error)}`)
  }
}

/** Calls `run` of a new instance. Throws `ModuleError` for every failure. The instance is discarded in either case. */
export function callInstance(compiled: Compiled, input: string, limits: CallLimits, send: SendRequest): string {
  const call = new InstanceCall(cleanMemory(compiled))
  try {
    return call.run(compiled.module, input, limits, send)
  } finally {
    compiled.spareMemory = call.memory
  }
}

/** Returns a memory of zeros: the spare memory, unless it has grown or is large, or a new one. */
function cleanMemory({ pages, spareMemory }: Compiled): WasmMemory {
  const isReusable = pages.initial <= REUSED_PAGES_MAX && spareMemory?.buffer.byteLength === pages.initial * PAGE_BYTES
  if (!spareMemory || !isReusable) return new engine.Memory(pages)
  new Uint8Array(spareMemory.buffer).fill(0)
  return spareMemory
}

class InstanceCall {
  readonly memory: WasmMemory
  #exports: WasmValues = {}
  /** The message of a plugin that called `abort`. */
  #abortMessage: string | undefined

  constructor(memory: WasmMemory) {
    this.memory = memory
  }

  run(module: WasmModule, input: string, limits: CallLimits, send: SendRequest): string {
    const bytes = encoder.encode(input)
    if (bytes.length > limits.inputBytesMax) throw new ModuleError(`takes at most ${limits.inputBytesMax} bytes of input`)
    try {
      this.#exports = new engine.Instance(module, { env: this.#imports(send) }).exports
      const at = this.#copyIn(bytes)
      const run = this.#exports[ABI.run] as (at: number, length: number) => unknown
      const result = run(at, bytes.length)
      if (typeof result !== 'bigint') throw new ModuleError("'run' does not return an i64")
      const packed = BigInt.asUintN(64, result)
      return this.#readText(Number(packed >> 32n), Number(packed & 0xffff_ffffn), limits.outputBytesMax)
    } catch (error) {
      throw this.#asModuleError(error)
    }
  }

  #imports(send: SendRequest): WasmValues {
    return {
      [MEMORY_IMPORT]: this.memory,
      abort: (message: unknown) => {
        this.#abortMessage = this.#readAbortMessage(message)
        throw new ModuleError('aborted')
      },
      ...(send && {
        [HTTP_IMPORT]: (pointer: number, length: number) => {
          const answer = encoder.encode(send(this.#readText(pointer, length, REQUEST_BYTES_MAX)))
          return BigInt.asIntN(64, (BigInt(this.#copyIn(answer)) << 32n) | BigInt(answer.length))
        },
      }),
    }
  }

  /** Running out of fuel shows up as a trap, so the counter is checked first. */
  #asModuleError(error: unknown): ModuleError {
    const fuel = (this.#exports[FUEL_EXPORT] as { readonly value?: bigint } | undefined)?.value
    if (fuel !== undefined && fuel < 0n) return new ModuleError('used up its fuel')
    if (this.#abortMessage !== undefined) return new ModuleError(`failed: ${this.#abortMessage}`)
    return error instanceof ModuleError ? error : new ModuleError(`failed: ${printableError(error)}`)
  }

  /** Copies bytes to a place that the plugin allocates, and returns its address. */
  #copyIn(bytes: Uint8Array): number {
    const alloc = this.#exports[ABI.alloc] as ((length: number) => unknown) | undefined
    const at = alloc?.(bytes.length)
    if (typeof at !== 'number') throw new ModuleError("'alloc' does not return an i32")
    this.#slice(at >>> 0, bytes.length).set(bytes)
    return at >>> 0
  }

  #readText(pointer: number, length: number, bytesMax: number): string {
    const count = length >>> 0
    if (count > bytesMax) throw new ModuleError(`returned ${count} bytes, and ${bytesMax} are allowed`)
    const bytes = this.#slice(pointer >>> 0, count)
    try {
      return utf8.decode(bytes)
    } catch {
      throw new ModuleError('returned a text that is not UTF-8')
    }
  }

  #slice(at: number, length: number): Uint8Array {
    if (at + length > this.memory.buffer.byteLength) throw new ModuleError('pointed outside of its memory')
    return new Uint8Array(this.memory.buffer, at, length)
  }

  /** Reads the message of an AssemblyScript plugin, a pointer to UTF-16. Returns a fixed text for anything else. */
  #readAbortMessage(message: unknown): string {
    const unknown = 'it aborted'
    if (typeof message !== 'number' || message >>> 0 < LENGTH_BYTES) return unknown
    try {
      const header = this.#slice((message >>> 0) - LENGTH_BYTES, LENGTH_BYTES)
      const length = new DataView(header.buffer, header.byteOffset, LENGTH_BYTES).getUint32(0, true)
      return utf16.decode(this.#slice(message >>> 0, Math.min(length, 2 * MESSAGE_CHARS_MAX))) || unknown
    } catch {
      return unknown
    }
  }
}

/** The engine's messages may quote names from the module. */
const printableError = (error: unknown): string => printable(error instanceof Error ? error.message : String(error))
