/** Compiles AssemblyScript to modules, in memory. */
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'

export const TEMPLATE = resolve(import.meta.dirname, '../../../../examples/plugin-template')

/** The sources by file name; `index.ts` is where it begins. */
export async function compileSources(sources: Readonly<Record<string, string>>): Promise<Uint8Array<ArrayBuffer>> {
  const { main } = await import('assemblyscript/asc')
  let module: Uint8Array<ArrayBuffer> | undefined
  const said: string[] = []
  const { error } = await main(['index.ts', '--outFile', 'plugin.wasm', '--optimize', '--runtime', 'stub'], {
    stdout: { write: () => true },
    stderr: { write: (text: string | Uint8Array) => said.push(String(text)) > 0 },
    readFile: (name: string) => sources[name] ?? null,
    writeFile: (_name: string, content: string | Uint8Array) => {
      module = new Uint8Array(content as Uint8Array)
    },
    listFiles: () => [],
  })
  if (error || !module) throw new Error(said.join('') || String(error))
  return module
}

const source = (name: string) => readFile(join(TEMPLATE, 'assembly', name), 'utf8')

/** The template's own plugin. */
export const compileTemplate = async () => compileSources({ 'index.ts': await source('index.ts'), 'text.ts': await source('text.ts') })

/** A plugin with the template's way of handing texts over, whose `index.ts` is given. */
export const compilePlugin = async (index: string) => compileSources({ 'index.ts': index, 'text.ts': await source('text.ts') })
