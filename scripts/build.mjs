// Builds one profile into dist/<name>/: `node scripts/build.mjs minimal`, a profile file of your own, or
// `--features hardware,probe` on top of the minimal profile. Prints and writes what each feature costs in bytes.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { build } from 'tsup'
import { CATALOGUE } from '../packages/sdk/src/catalogue.ts'
import { bundleReport, printReport } from './bundle-report.mjs'
import { takeBuiltins } from './take-builtins.mjs'

const ROOT = resolve(import.meta.dirname, '..')
// Native or self-locating packages stay outside the bundle and are installed beside it; those of the last line are looked for
// by others, which do as well without.
const EXTERNAL = [
  ...['serialport', 'i2c-bus', 'spi-device', 'node-hid', 'usb', 'koffi', 'playwright-core', 'pg-native'],
  ...['zlib-sync', 'bufferutil', 'utf-8-validate'],
]
// What CommonJS packages expect of a module, in every file of the bundle.
const BANNER =
  "const require=process.getBuiltinModule('node:module').createRequire(import.meta.url),__filename=import.meta.filename,__dirname=import.meta.dirname;"

const usage = (message) => {
  process.stderr.write(
    `${message}\nusage: pnpm build <minimal|standard|full|profile.ts> | pnpm build --features <flag,flag…> [--name <name>]\n`,
  )
  process.exit(2)
}

/** The packages of a flag of §2.7, of a catalogue id, or of an embedder's own `x-…` package. */
function packagesOf(word) {
  const ids = Object.entries(CATALOGUE)
    .filter(([id, row]) => row.flag === word || id === word)
    .map(([id]) => id)
  if (word.startsWith('x-')) ids.push(word)
  if (ids.length === 0) usage(`unknown feature '${word}'; 'sluice features' lists them all`)
  const missing = ids.filter((id) => !existsSync(join(ROOT, 'packages', id, 'package.json')))
  if (missing.length > 0)
    usage(`'${word}' needs ${missing.map((id) => `@sluice/${id}`).join(' and ')}, which this release does not have yet`)
  return ids
}

function composedProfile(words, name) {
  const ids = [...new Set(words.flatMap(packagesOf))]
  const imports = ids.map((id, index) => `import feature${index} from '@sluice/${id}'`)
  return [
    "import { main } from '@sluice/cli'",
    "import { always } from './always.ts'",
    ...imports,
    `const added = [${ids.map((_, index) => `feature${index}`).join(', ')}]`,
    'const known = new Set(always.map((feature) => feature.id))',
    `await main({ profile: ${JSON.stringify(name)}, features: [...always, ...added.filter((feature) => !known.has(feature.id))] })`,
  ].join('\n')
}

function readArguments() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { features: { type: 'string' }, name: { type: 'string' }, summary: { type: 'boolean' } },
  })
  if (values.features !== undefined) {
    const words = values.features
      .split(',')
      .map((word) => word.trim())
      .filter(Boolean)
    if (words.length === 0) usage('--features wants at least one flag')
    const name = values.name ?? 'custom'
    return { name, source: composedProfile(words, name), summary: values.summary }
  }
  const [profile, ...rest] = positionals
  if (!profile || rest.length > 0) usage('name one profile')
  const file = profile.endsWith('.ts') ? resolve(profile) : join(ROOT, 'profiles', `${profile}.ts`)
  if (!existsSync(file)) usage(`no profile '${profile}': ${relative(ROOT, file)} does not exist`)
  return { name: values.name ?? basename(file, '.ts'), file, summary: values.summary }
}

/** The HTTP adaptor asks of each request whether it is HTTP/2, which the daemon never serves: the real module costs TLS too. */
const NO_HTTP2 = 'export class Http2ServerRequest {}\nexport const constants = {}'

/** Resolves the profile the entry imports: a file, or one composed from flags; and a package of your own by its folder. */
const profilePlugin = ({ file, source }) => ({
  name: 'sluice-profile',
  setup(esbuild) {
    esbuild.onResolve({ filter: /^sluice:profile$/ }, ({ path }) => (file ? { path: file } : { path, namespace: 'sluice' }))
    esbuild.onResolve({ filter: /^@sluice\/x-[\w-]+$/ }, ({ path }) => {
      const entry = join(ROOT, 'packages', path.slice('@sluice/'.length), 'src', 'index.ts')
      return existsSync(entry) ? { path: entry } : undefined
    })
    esbuild.onResolve({ filter: /^node:http2$/ }, () => ({ path: 'http2', namespace: 'no-http2' }))
    esbuild.onLoad({ filter: /.*/, namespace: 'no-http2' }, () => ({ contents: NO_HTTP2 }))
    esbuild.onLoad({ filter: /.*/, namespace: 'sluice' }, () => ({ contents: source, resolveDir: join(ROOT, 'profiles'), loader: 'ts' }))
  },
})

const target = readArguments()
const outDir = join(ROOT, 'dist', target.name)
rmSync(outDir, { recursive: true, force: true })
await build({
  config: false,
  entry: { sluice: join(ROOT, 'scripts', 'entry.mjs') },
  outDir,
  format: ['esm'],
  target: 'node24',
  platform: 'node',
  bundle: true,
  splitting: true,
  minify: true,
  dts: false,
  metafile: true,
  silent: true,
  removeNodeProtocol: false, // node:sqlite has no other name
  outExtension: () => ({ js: '.mjs' }),
  noExternal: [new RegExp(`^(?!(?:${EXTERNAL.join('|')})(?:/|$))`)],
  external: EXTERNAL,
  banner: { js: BANNER },
  esbuildPlugins: [profilePlugin(target)],
}).catch(() => process.exit(1)) // what is wrong has been printed
takeBuiltins(outDir)
const metafile = JSON.parse(readFileSync(join(outDir, 'metafile-esm.json'), 'utf8'))
rmSync(join(outDir, 'metafile-esm.json'))
const report = bundleReport(metafile, target.name)
writeFileSync(join(outDir, 'bundle-report.json'), `${JSON.stringify(report, null, 2)}\n`)
printReport(report, { packages: !target.summary })
