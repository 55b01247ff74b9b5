// Builds the page of the dashboard with Vite into a folder: `index.html` and hashed files in `assets`, each also compressed for br and gzip.
// A bundle has them in `dashboard`; `node scripts/dashboard-page.mjs` builds them into packages/dashboard/dist/dashboard, from where the
// sources and the published package serve them.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { build } from 'vite'

const ROOT = resolve(import.meta.dirname, '..')
const PAGE = join(ROOT, 'packages/dashboard/page')
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } }

/**
 * Replaces `folder` by the page. Resolves to its scripts, each with its bytes and the modules in it, and to the modules that each module
 * imports, in the form of esbuild's metafile.
 */
export async function buildPage(folder) {
  const imports = {}
  const plugins = [
    {
      name: 'imports-of-modules',
      moduleParsed({ id, importedIds, dynamicallyImportedIds }) {
        if (isFile(id))
          imports[pathOf(id)] = [...importedIds, ...dynamicallyImportedIds].filter(isFile).map((path) => ({ path: pathOf(path) }))
      },
    },
  ]
  const configFile = join(PAGE, 'vite.config.mjs')
  const { output } = await build({ root: PAGE, configFile, logLevel: 'warn', build: { write: false }, plugins })
  rmSync(folder, { recursive: true, force: true })
  for (const part of output) {
    const bytes = Buffer.from(part.type === 'chunk' ? part.code : part.source)
    const file = join(folder, part.fileName)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, bytes)
    writeFileSync(`${file}.br`, brotliCompressSync(bytes, BROTLI))
    writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }))
  }
  return { scripts: output.filter(({ type }) => type === 'chunk').map(describeChunk), imports }
}

/** Vite's own modules begin with a zero character. */
const isFile = (id) => !id.startsWith('\0')

const pathOf = (id) => relative(ROOT, id.split('?')[0])

const describeChunk = ({ fileName, code, modules }) => ({
  file: `dashboard/${fileName}`,
  bytes: Buffer.byteLength(code),
  inputs: Object.fromEntries(
    Object.entries(modules)
      .filter(([id]) => isFile(id))
      .map(([id, { renderedLength }]) => [pathOf(id), { bytesInOutput: renderedLength }]),
  ),
})

/**
 * A plugin for esbuild that builds the page into `<folder>/dashboard` when the bundle contains the dashboard. `addTo` adds its scripts to a
 * metafile, so that reports, notices and the bill of materials have them too.
 */
export function dashboardPage(folder) {
  let page = { scripts: [], imports: {} }
  return {
    plugin: {
      name: 'dashboard-page',
      setup(esbuild) {
        esbuild.onLoad({ filter: /[\\/]packages[\\/]dashboard[\\/]src[\\/]index\.ts$/ }, async () => {
          page = await buildPage(join(folder, 'dashboard'))
          return undefined // esbuild loads the module itself.
        })
      },
    },
    addTo({ inputs, outputs }) {
      for (const { file, bytes, inputs: modules } of page.scripts) {
        outputs[file] = { bytes, inputs: modules, imports: [], exports: [] }
        for (const module of Object.keys(modules)) inputs[module] ??= { bytes: 0, imports: page.imports[module] ?? [] }
      }
    },
  }
}

if (import.meta.main) {
  const folder = join(ROOT, 'packages/dashboard/dist/dashboard')
  const { scripts } = await buildPage(folder)
  console.log(`built the page with ${scripts.length} scripts into ${relative(process.cwd(), folder)}`)
}
