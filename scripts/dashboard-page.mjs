// Builds the page of the dashboard with Vite into a folder: `index.html` and hashed files in `assets`, each also compressed for br and gzip.
// `menu.html` is the page with its menu as HTML, for a browser that is signed in. Both have the styles in them, and name the script that
// the first one loads, so that the browser asks for it at once.
// A bundle has them in `dashboard`; `node scripts/dashboard-page.mjs` builds them into packages/dashboard/dist/dashboard, from where the
// sources and the published package serve them.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { build as bundle } from 'esbuild'
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
  const menu = await prerender()
  const { output } = await build({ root: PAGE, configFile, logLevel: 'warn', build: { write: false }, plugins })
  rmSync(folder, { recursive: true, force: true })
  const write = (name, content) => {
    const bytes = Buffer.from(content)
    const file = join(folder, name)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, bytes)
    writeFileSync(`${file}.br`, brotliCompressSync(bytes, BROTLI))
    writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }))
  }
  for (const part of output)
    if (!/\.(?:html|css)$/.test(part.fileName)) write(part.fileName, part.type === 'chunk' ? part.code : part.source)
  const page = wholePage(output)
  write('index.html', page)
  write(
    'menu.html',
    page.replace('<div id="app">', () => `<div id="app">${menu}`),
  )
  return { scripts: output.filter(({ type }) => type === 'chunk').map(describeChunk), imports }
}

/** Returns the page with its styles in it, and with the script of the first place named. */
function wholePage(output) {
  const sourceOf = (pattern) => String(output.find(({ fileName }) => pattern.test(fileName)).source)
  const { fileName: start } = output.find(({ name, type }) => type === 'chunk' && name === 'start')
  const styles = `<style>${sourceOf(/\.css$/)}</style>`
  const html = sourceOf(/\.html$/)
  const preload = `<link rel="modulepreload" crossorigin href="./${start}">`
  // The first script is small, and applies the theme before the first picture.
  const page = html.replace('<script type="module"', '<script type="module" blocking="render"')
  const whole = page.replace(/<link rel="stylesheet"[^>]*>/, () => `${preload}\n    ${styles}`)
  if (page === html || whole === page) throw new Error('The page names no script or no styles')
  return whole
}

/** The menu as HTML. */
async function prerender() {
  const { outputFiles } = await bundle({
    entryPoints: [join(PAGE, 'src/prerender.tsx')],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    logLevel: 'warning',
  })
  const { shell } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`)
  return shell()
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
