/** The engine's WebAssembly interface, as far as plugins need it: without a browser's types the compiler knows none. */

export interface WasmModule {
  readonly __module: never
}

/** What an instance exports, and what it is given. */
export type WasmValues = Readonly<Record<string, unknown>>

export interface WasmMemory {
  /** A new one after each growth. */
  readonly buffer: ArrayBuffer
}

interface Engine {
  readonly Memory: new (pages: { readonly initial: number; readonly maximum: number }) => WasmMemory
  readonly Module: new (bytes: Uint8Array) => WasmModule
  readonly Instance: new (module: WasmModule, imports: Readonly<Record<string, WasmValues>>) => { readonly exports: WasmValues }
}

export const { Module, Memory, Instance } = (globalThis as unknown as { WebAssembly: Engine }).WebAssembly
