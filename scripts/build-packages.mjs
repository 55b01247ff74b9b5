// Builds every public package into its folder `dist`: tsup bundles each entry of `publishConfig.exports` to ESM, and tsc emits the
// declarations. `node scripts/build-packages.mjs` builds all packages, and with ids, such as `sdk kit`, only those.

import { execFileSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { build } from 'tsup'
import { buildPage } from './dashboard-page.mjs'
import { publicPackages, ROOT } from './packages.mjs'

/** Builds these packages. Rejects if a source has a type error or does not bundle. */
export async function buildPackages(packages = publicPackages()) {
  const types = mkdtempSync(join(tmpdir(), 'sluice-types-'))
  try {
    emitDeclarations(types)
    for (const { id, folder, entries } of packages) {
      const dist = join(folder, 'dist')
      rmSync(dist, { recursive: true, force: true })
      await bundle(folder, dist, entries)
      if (id === 'dashboard') await buildPage(join(dist, 'dashboard'))
      for (const { types: entry } of entries)
        copyDeclarations(join(types, id, 'src', relative('dist', entry)), join(types, id, 'src'), dist)
    }
  } finally {
    rmSync(types, { recursive: true, force: true })
  }
}

/** Builds the packages unless each `dist` is newer than every source. */
export async function buildPackagesUnlessFresh() {
  const packages = publicPackages()
  const sources = globSync(
    ['packages/*/{src,page}/**/*.{ts,tsx,css,html}', 'packages/*/package.json', 'scripts/*packages.mjs', 'pnpm-lock.yaml'],
    { cwd: ROOT },
  )
  const changedAtMs = Math.max(...sources.map((file) => statSync(join(ROOT, file)).mtimeMs))
  const files = packages.flatMap(({ folder, entries }) =>
    entries.flatMap(({ module, types }) => [join(folder, module), join(folder, types)]),
  )
  if (!files.every((file) => existsSync(file) && statSync(file).mtimeMs > changedAtMs)) await buildPackages(packages)
}

/** Emits the declarations of all packages into `outDir`, as `<id>/src/<file>.d.ts`. */
export function emitDeclarations(outDir) {
  const config = join(outDir, 'tsconfig.json')
  const compilerOptions = {
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    rootDir: join(ROOT, 'packages'),
    outDir,
    typeRoots: [join(ROOT, 'node_modules/@types')],
  }
  const include = [join(ROOT, 'packages/*/src')]
  // Packages are published without their fakes and benches, so a type there needs no declaration.
  const exclude = ['*.test.ts', 'testing/**'].map((files) => join(ROOT, 'packages/*/src/**', files))
  writeFileSync(config, JSON.stringify({ extends: join(ROOT, 'tsconfig.base.json'), compilerOptions, include, exclude }))
  execFileSync(join(ROOT, 'node_modules/.bin/tsc'), ['-p', config], { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] })
}

/**
 * Takes modules of the kit, such as `@sluice/kit/foreign-json`, into a package that has an entry `./webhook`: that entry loads no
 * other package than the sdk. These modules have no state, so a process may load them twice. Modules that they load late stay in the kit.
 */
const takeKitModules = {
  noExternal: [/^@sluice\/kit\/./],
  esbuildPlugins: [
    {
      name: 'sluice-kit-modules',
      setup(esbuild) {
        const kit = join(ROOT, 'packages/kit')
        const { exports } = JSON.parse(readFileSync(join(kit, 'package.json'), 'utf8'))
        const sourceOf = (name) => join(kit, exports[`./${name}`] ?? `no entry ${name}`)
        esbuild.onResolve({ filter: /^@sluice\/kit\/./ }, ({ path }) => ({ path: sourceOf(path.slice('@sluice/kit/'.length)) }))
        esbuild.onResolve({ filter: /^\.\/.+\.ts$/ }, ({ path, importer, kind }) => {
          const name = basename(path, '.ts')
          const isLate = kind === 'dynamic-import' && join(dirname(importer), `${name}.ts`) === sourceOf(name)
          return isLate ? { path: `@sluice/kit/${name}`, external: true } : undefined
        })
      },
    },
  ],
}

/** Bundles the entries. Code that several entries share is a file of its own, so that it exists once in a process. */
const bundle = (folder, outDir, entries) =>
  build({
    config: false,
    entry: Object.fromEntries(entries.map(({ source }) => [source.slice('src/'.length, -'.ts'.length), join(folder, source)])),
    outDir,
    format: ['esm'],
    target: 'node24',
    platform: 'node',
    splitting: true,
    skipNodeModulesBundle: true,
    removeNodeProtocol: false, // `node:sqlite` exists only with its prefix.
    ...(entries.some(({ key }) => key === './webhook') && takeKitModules),
    dts: false,
    silent: true,
  })

const SPECIFIER = /((?:\bfrom |\bimport )|\bimport\()(['"])(\.{1,2}\/[^'"]+)\.ts\2/g

/** Copies a declaration file and the files that it imports from `types` to `dist`, and makes their imports name JavaScript files. */
function copyDeclarations(file, types, dist) {
  const target = join(dist, relative(types, file))
  if (existsSync(target)) return
  const text = readFileSync(file, 'utf8')
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(target, text.replace(SPECIFIER, '$1$2$3.js$2'))
  for (const [, , , path] of text.matchAll(SPECIFIER)) copyDeclarations(resolve(dirname(file), `${path}.d.ts`), types, dist)
}

if (import.meta.main) {
  const ids = process.argv.slice(2)
  const packages = publicPackages()
  const unknown = ids.filter((id) => !packages.some((each) => each.id === id))
  if (unknown.length > 0) {
    console.error(`no public package has the folder packages/${unknown[0]}`)
    process.exit(2)
  }
  const chosen = packages.filter(({ id }) => ids.length === 0 || ids.includes(id))
  await buildPackages(chosen)
  console.log(`built ${chosen.length} packages into packages/*/dist`)
}
