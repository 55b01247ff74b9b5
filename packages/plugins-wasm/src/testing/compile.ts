/** Compiles AssemblyScript plugins in memory: the template, and a plugin whose input selects its behaviour. */
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'

export const TEMPLATE = resolve(import.meta.dirname, '../../../../examples/plugin-template')

/** Compiles the sources, by file name; `index.ts` is the entry. Throws the compiler's messages. */
export async function compileSources(sources: Readonly<Record<string, string>>): Promise<Uint8Array<ArrayBuffer>> {
  const { main } = await import('assemblyscript/asc')
  let module: Uint8Array<ArrayBuffer> | undefined
  const messages: string[] = []
  const { error } = await main(['index.ts', '--outFile', 'plugin.wasm', '--optimize', '--runtime', 'stub'], {
    stdout: { write: () => true },
    stderr: { write: (text: string | Uint8Array) => messages.push(String(text)) > 0 },
    readFile: (name: string) => sources[name] ?? null,
    writeFile: (_name: string, content: string | Uint8Array) => {
      module = new Uint8Array(content as Uint8Array)
    },
    listFiles: () => [],
  })
  if (error || !module) throw new Error(messages.join('') || String(error))
  return module
}

const source = (name: string) => readFile(join(TEMPLATE, 'assembly', name), 'utf8')

/** Compiles the template's own plugin. */
export const compileTemplate = async () => compileSources({ 'index.ts': await source('index.ts'), 'text.ts': await source('text.ts') })

/** A plugin that does what its input says. */
const BEHAVIOURS = `
import { fromText, toText } from './text'
export { alloc } from './text'

@external("env", "sluice_http")
declare function request(at: usize, length: usize): u64

let calls = 0

function recurse(depth: i32): i32 { return recurse(depth + 1) + 1 }

export function run(at: usize, length: usize): u64 {
  const input = toText(at, length)
  calls++
  if (input == 'count') return fromText(calls.toString())
  if (input == 'loop') while (true) {}
  if (input == 'grow') while (true) { if (memory.grow(1) < 0) return fromText((memory.size() / 16).toString()) }
  if (input == 'trap') unreachable()
  if (input == 'throw') throw new Error('this is why')
  if (input == 'recurse') return recurse(0)
  if (input == 'outside') return (0xffffff00 << 32) | 1024
  if (input == 'long') return 1 << 30
  if (input == 'bytes') { store<u8>(at, 0xff); return (<u64>at << 32) | 1 }
  if (input == 'empty') return 0
  if (input.startsWith('http ')) {
    const bytes = String.UTF8.encode(input.substring(5))
    const answer = request(changetype<usize>(bytes), bytes.byteLength)
    return fromText(toText(<usize>(answer >> 32), <usize>(answer & 0xffffffff)))
  }
  return fromText(input)
}
`

/** Compiles the plugin of behaviours, with the template's text functions. Without the network, all code for requests is left out. */
export async function compileBehaviours(hasNetwork: boolean): Promise<Uint8Array<ArrayBuffer>> {
  const withoutRequests = () => BEHAVIOURS.replace(/@external[\s\S]*?u64\n/, '').replace(/ {2}if \(input\.startsWith[\s\S]*?\n {2}\}\n/, '')
  return compileSources({ 'index.ts': hasNetwork ? BEHAVIOURS : withoutRequests(), 'text.ts': await source('text.ts') })
}
