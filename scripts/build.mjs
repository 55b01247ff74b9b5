// Builds a bundle into dist/<name>/: of a profile (`node scripts/build.mjs full`), of a profile file of your own, of either with more
// features (`--features probe`), or of named features only (`--only provider-openai,channel-telegram`). A feature may also be an npm
// package that is installed where the command runs (`--features sluice-feature-hello`). Prints the size of each
// package and writes it to bundle-report.json. `--pack` also writes the archives of the build into dist/packed/<name>/. `--names` keeps the
// names of functions, for profiles.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { constants } from 'node:os'
import { basename, dirname, extname, join, relative, resolve, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'tsup'
import { CATALOGUE } from '../packages/sdk/src/feature/catalogue.ts'
import { completeBuild } from './artefact/complete-build.mjs'
import { packBuild } from './artefact/pack-build.mjs'
import { PROFILE_FILE, readBuildOptions, usage } from './build-options.mjs'
import { bundleReport, printReport } from './bundle-report.mjs'
import { bundledFiles } from './bundled-files.mjs'
import { dashboardPage } from './dashboard-page.mjs'
import { laterChannels } from './later-channels.mjs'
import { alone, replaceBuild } from './replace-build.mjs'
import { takeBuiltins } from './take-builtins.mjs'
import { trimBanner } from './trim-banner.mjs'
import { trimDependencies } from './trim-dependencies.mjs'

const ROOT = resolve(import.meta.dirname, '..')
/** The folder that file names in the arguments are relative to. */
const CALLER = process.cwd()
// Packages that stay outside the bundle: native ones and ones that read files of their own folder, which are installed next to it.
// Dependencies load the packages of the last line if they are present, and work without them.
const EXTERNAL = [
  ...['serialport', 'i2c-bus', 'spi-device', 'node-hid', 'usb', 'koffi', 'playwright-core', 'pg-native', '@whiskeysockets/baileys'],
  ...['zlib-sync', 'bufferutil', 'utf-8-validate'],
]
// The variables that CommonJS packages expect, for every file of the bundle that uses one.
const BANNER =
  "const require=process.getBuiltinModule('node:module').createRequire(import.meta.url),__filename=import.meta.filename,__dirname=import.meta.dirname;"

/** Returns the packages of a build flag, of a catalogue id, of an embedder's `x-…` package, or of an installed npm package. */
function packagesOf(word) {
  const ids = Object.entries(CATALOGUE)
    .filter(([id, row]) => row.flag === word || id === word)
    .map(([id]) => id)
  if (ids.length === 0 && isInstalled(word)) return [word]
  if (word.startsWith('x-')) ids.push(word)
  if (ids.length === 0) usage(`unknown feature '${word}'; 'sluice features' lists them all, and other packages are installed by npm first`)
  const missing = ids.filter((id) => !existsSync(join(ROOT, 'packages', id, 'package.json')))
  if (missing.length > 0)
    usage(`'${word}' needs ${missing.map((id) => `@sluice/${id}`).join(' and ')}, which this release does not have yet`)
  return ids.map((id) => `@sluice/${id}`)
}

/** Whether a folder from where the user stands up to the root of the file system has this npm package. */
function isInstalled(name) {
  try {
    return findPackageJSON(name, pathToFileURL(join(CALLER, 'any.mjs'))) !== undefined
  } catch {
    return false
  }
}

const importsOf = (packages) => packages.map((name, index) => `import feature${index} from '${name}'`)
const listOf = (packages) => `[${packages.map((_, index) => `feature${index}`).join(', ')}]`

/** Returns the source of a profile with only these features. */
const onlyThese = (packages, name) =>
  [
    "import { main } from '@sluice/cli'",
    ...importsOf(packages),
    `await main({ profile: ${JSON.stringify(name)}, features: ${listOf(packages)} })`,
  ].join('\n')

/** Returns the source of the module that a profile imports in place of `@sluice/cli`: its `main` adds these features to the profile. */
const cliThatAdds = (packages, name) =>
  [
    "export * from '@sluice/cli'",
    "import { main as run } from '@sluice/cli'",
    ...importsOf(packages),
    `const added = ${listOf(packages)}`,
    'export const main = ({ features, ...options }) => {',
    '  const more = added.filter(({ id }) => !features.some((feature) => feature.id === id))',
    `  return run({ ...options, profile: ${JSON.stringify(name)}, features: [...features, ...more] })`,
    '}',
  ].join('\n')

/** Returns the flags of a list such as `hardware,probe`, and their packages. */
function readList(option, list) {
  const flags = list
    .split(',')
    .map((word) => word.trim())
    .filter(Boolean)
  if (flags.length === 0) usage(`--${option} wants at least one flag`)
  return { flags, packages: [...new Set(flags.flatMap(packagesOf))] }
}

/** `name` is the folder in dist/. The bundle contains `recipe`, from which `buildHint` of catalogue.ts makes build commands. */
function readArguments() {
  const { values, positionals } = readBuildOptions(process.argv.slice(2))
  const { summary, pack = false } = values
  if (values.name !== undefined && !/^[\w][\w.-]*$/.test(values.name))
    usage(`--name wants letters, digits, '-', '.' and '_', not '${values.name}'`)
  const named = values.name === undefined ? {} : { name: values.name }
  if (values.only !== undefined) {
    if (positionals.length > 0 || values.features !== undefined) usage('--only takes neither a profile nor --features')
    const name = values.name ?? 'custom'
    const { flags, packages } = readList('only', values.only)
    return { name, source: onlyThese(packages, name), recipe: { features: flags, ...named }, summary, pack }
  }
  const [profile = values.features === undefined ? undefined : 'minimal', ...rest] = positionals
  if (!profile || rest.length > 0) usage('name one profile')
  const path = PROFILE_FILE.test(profile) ? resolve(CALLER, profile) : join(ROOT, 'profiles', `${profile}.ts`)
  if (!existsSync(path)) usage(`no profile '${profile}': ${path} does not exist`)
  const file = realpathSync(path)
  if (values.features === undefined)
    return { name: values.name ?? basename(file, extname(file)), file, recipe: { profile, features: [], ...named }, summary, pack }
  const name = values.name ?? 'custom'
  const { flags, packages } = readList('features', values.features)
  return { name, file, cli: cliThatAdds(packages, name), recipe: { profile, features: flags, ...named }, summary, pack }
}

/** Marks a resolution that has begun again from a folder of this repository. */
const RESOLVED_HERE = Symbol('resolved here')

/** Resolves the profile that the entry imports, which is a file or generated from flags, and `x-…` packages by their folders. */
const profilePlugin = ({ file, source, cli }) => ({
  name: 'sluice-profile',
  setup(esbuild) {
    const generated = { profile: source, cli }
    esbuild.onResolve({ filter: /^sluice:profile$/ }, () => (file ? { path: file } : { path: 'profile', namespace: 'sluice' }))
    esbuild.onResolve({ filter: /^@sluice\/cli$/ }, ({ importer }) =>
      cli && importer === file ? { path: 'cli', namespace: 'sluice' } : undefined,
    )
    esbuild.onResolve({ filter: /^@sluice\/profiles\/[\w-]+\.ts$/ }, ({ path }) => ({ path: join(ROOT, path.slice('@sluice/'.length)) }))
    // A profile file or a feature outside this repository gets the packages of this repository, so that a bundle has each of them once.
    esbuild.onResolve({ filter: /^@sluice\// }, ({ path, importer, kind, pluginData }) =>
      pluginData === RESOLVED_HERE || (importer.startsWith(ROOT + sep) && !importer.includes(`${sep}node_modules${sep}`))
        ? undefined
        : esbuild.resolve(path, { kind, resolveDir: join(ROOT, 'profiles'), pluginData: RESOLVED_HERE }),
    )
    esbuild.onResolve({ filter: /^@sluice\/x-[\w-]+$/ }, ({ path }) => {
      const entry = join(ROOT, 'packages', path.slice('@sluice/'.length), 'src', 'index.ts')
      return existsSync(entry) ? { path: entry } : undefined
    })
    // A package of the command line is installed where the user stands.
    esbuild.onResolve({ filter: /^[^./]/ }, ({ path, namespace, kind, pluginData }) =>
      pluginData === RESOLVED_HERE || namespace !== 'sluice' || path.startsWith('@sluice/')
        ? undefined
        : esbuild.resolve(path, { kind, resolveDir: CALLER, pluginData: RESOLVED_HERE }),
    )
    esbuild.onLoad({ filter: /.*/, namespace: 'sluice' }, ({ path }) => ({
      contents: generated[path],
      resolveDir: join(ROOT, 'profiles'),
      loader: 'ts',
    }))
  },
})

/** Names the packages that a file outside of the workspace imports and that are not installed next to it, with the command that installs them. */
function missingPackages(errors) {
  const lines = errors.flatMap(({ text, location }) => {
    const [, specifier] = /^Could not resolve "([^"./][^"]*)"/.exec(text) ?? []
    if (specifier === undefined || !location) return []
    const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
    const folder = resolve(ROOT, dirname(location.file.replace(/^[a-z]+:(?=\/)/, '')))
    return [`${location.file} imports ${name}, which is not installed there: npm install --prefix ${folder} ${name}`]
  })
  return new Set(lines)
}

/** Returns the commit of a clone, and whether files of git differ from it; empty without git, as in an archive of the sources. */
function commitOf(root) {
  if (!existsSync(join(root, '.git'))) return ''
  const git = (...args) => spawnSync('git', args, { cwd: root, encoding: 'utf8' })
  const { status, stdout } = git('rev-parse', '--short=12', 'HEAD')
  if (status !== 0) return ''
  const { stdout: changes } = git('status', '--porcelain', '--untracked-files=no')
  return stdout.trim() + (changes?.trim() ? ', with changes' : '')
}

const target = readArguments()
process.chdir(ROOT)
const dist = join(ROOT, 'dist')
mkdirSync(dist, { recursive: true })
const outDir = mkdtempSync(join(dist, `.${target.name}-`))
process.on('exit', () => rmSync(outDir, { recursive: true, force: true }))
// A process that a signal ends runs no handlers of its exit.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(128 + constants.signals[signal]))
const page = dashboardPage(outDir)
await build({
  config: false,
  entry: { sluice: join(ROOT, 'scripts', 'entry.mjs') },
  outDir,
  format: ['esm'],
  target: 'node24',
  platform: 'node',
  bundle: true,
  splitting: true,
  define: { SLUICE_BUILD: JSON.stringify(target.recipe), SLUICE_COMMIT: JSON.stringify(commitOf(ROOT)) },
  // A profile needs the names of the functions.
  minify: !process.argv.includes('--names'),
  dts: false,
  metafile: true,
  silent: true,
  removeNodeProtocol: false, // `node:sqlite` exists only with its prefix.
  outExtension: () => ({ js: '.mjs' }),
  noExternal: [new RegExp(`^(?!(?:${EXTERNAL.join('|')})(?:/|$))`)],
  external: EXTERNAL,
  banner: { js: BANNER },
  esbuildPlugins: [laterChannels(target.file), profilePlugin(target), trimDependencies, bundledFiles(outDir), page.plugin],
  // The bundle contains hashes of paths that are relative to this folder. The default is the folder in which this process started.
  esbuildOptions: (options) => {
    options.absWorkingDir = ROOT
  },
}).catch((error) => {
  // tsup has printed the error itself.
  for (const line of missingPackages(error?.errors ?? [])) console.error(`build: ${line}`)
  process.exit(1)
})
takeBuiltins(outDir)
trimBanner(outDir, BANNER)
const metafile = JSON.parse(readFileSync(join(outDir, 'metafile-esm.json'), 'utf8'))
rmSync(join(outDir, 'metafile-esm.json'))
page.addTo(metafile)
const report = bundleReport(metafile, target.name)
writeFileSync(join(outDir, 'bundle-report.json'), `${JSON.stringify(report, null, 2)}\n`)
try {
  completeBuild({ root: ROOT, folder: outDir, metafile, profile: target.name })
} catch (error) {
  console.error(`build: ${error.message}`)
  process.exit(1)
}
const folder = join(dist, target.name)
const packed = await alone(join(dist, '.lock'), async () => {
  replaceBuild(outDir, folder, Date.now())
  return target.pack ? await packBuild(folder, join(dist, 'packed', target.name)) : []
})
printReport(report, { packages: !target.summary })
console.log(`built ${relative(CALLER, join(folder, 'sluice'))}`)
for (const file of packed) console.log(`packed ${relative(CALLER, file)}`)
