/** MicroPython itself, as WebAssembly, behind its own REPL: what a board would say to these very bytes. */

interface Interpreter {
  replInit(): void
  /** Not 0: a soft reset was asked for. */
  replProcessChar(byte: number): number
}

export interface Micropython {
  /** What it answers, at once. */
  feed(bytes: Uint8Array): Buffer
  /** Runs one program in raw mode. */
  execute(code: string): { readonly stdout: string; readonly stderr: string }
}

const MODULE = '@micropython/micropython-webassembly-pyscript/micropython.mjs'

/** One in each process; undefined: it is not installed. */
export async function micropython(): Promise<Micropython | undefined> {
  const module: unknown = await import(MODULE).catch(() => undefined)
  if (module === undefined) return undefined
  const { loadMicroPython } = module as {
    loadMicroPython(options: { heapsize: number; linebuffer: false; stdout(bytes: Uint8Array): void }): Promise<Interpreter>
  }
  const said: Uint8Array[] = []
  const interpreter = await loadMicroPython({
    heapsize: 1_048_576,
    linebuffer: false,
    stdout: (bytes) => void said.push(Buffer.from(bytes)),
  })
  interpreter.replInit()
  said.length = 0
  const feed = (bytes: Uint8Array): Buffer => {
    for (const byte of bytes) interpreter.replProcessChar(byte)
    return Buffer.concat(said.splice(0))
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
