/** MicroPython itself, as WebAssembly, with its own REPL, which answers as a board would. */

interface Interpreter {
  replInit(): void
  /** Returns a value other than 0 when a soft reset was requested. */
  replProcessChar(byte: number): number
}

export interface Micropython {
  /** Takes bytes and returns the answer. */
  feed(bytes: Uint8Array): Buffer
  /** Runs one program in raw mode. */
  execute(code: string): { readonly stdout: string; readonly stderr: string }
}

const MODULE = '@micropython/micropython-webassembly-pyscript/micropython.mjs'

/** Starts the interpreter, of which a process has only one. Returns undefined when the package is not installed. */
export async function micropython(): Promise<Micropython | undefined> {
  const module: unknown = await import(MODULE).catch(() => undefined)
  if (module === undefined) return undefined
  const { loadMicroPython } = module as {
    loadMicroPython(options: { heapsize: number; linebuffer: false; stdout(bytes: Uint8Array): void }): Promise<Interpreter>
  }
  const output: Uint8Array[] = []
  const interpreter = await loadMicroPython({
    heapsize: 1_048_576,
    linebuffer: false,
    stdout: (bytes) => void output.push(Buffer.from(bytes)),
  })
  interpreter.replInit()
  output.length = 0
  const feed = (bytes: Uint8Array): Buffer => {
    for (const byte of bytes) interpreter.replProcessChar(byte)
    return Buffer.concat(output.splice(0))
  }
  return {
    feed,
    execute(code) {
      feed(Buffer.from('\r\x03\x01', 'latin1'))
      const [stdout = '', stderr = ''] = feed(Buffer.concat([Buffer.from(code), Buffer.of(0x04)]))
        .toString('latin1')
        .replace(/^OK/, '')
        .split('\x04')
      return { stdout, stderr }
    },
  }
}
