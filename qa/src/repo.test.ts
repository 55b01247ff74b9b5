/** The shape of the repository, checked by reading its files: lists and rules agree with the folders. */
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { CATALOGUE, type Feature, isInProfile, ROWS, type Row } from '@sluice/sdk'
import { NODE_MIN } from '@sluice/sdk/node-version'
import { testHost } from '@sluice/testkit/host'
import { describe, expect, test } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../..')
/** The packages of the core in layers; each depends only on earlier ones. */
const LAYERS = [
  'sdk',
  'kit',
  'ownership',
  'store',
  'config',
  'backup',
  'agent',
  'sop',
  'delivery',
  'approvals',
  'runtime',
  'http',
  'daemon',
  'cli',
]
const CORE = [...LAYERS, 'sandbox-common', 'mail-common', 'provider-common', 'voice-common', 'chatapp-common', 'testkit', 'hardware']
/** The package that the features of a family share, by the beginning of their names. */
const FAMILIES: Readonly<Record<string, string>> = {
  'hardware-': '@sluice/hardware',
  'sandbox-': '@sluice/sandbox-common',
  'channel-email': '@sluice/mail-common',
  'channel-mailpush': '@sluice/mail-common',
  'channel-voice-': '@sluice/voice-common',
  'channel-chatapp': '@sluice/chatapp-common',
  'provider-': '@sluice/provider-common',
  'store-': '@sluice/store',
}
const folders = readdirSync(join(ROOT, 'packages')).filter((name) => existsSync(join(ROOT, 'packages', name, 'package.json')))
const features = folders.filter((name) => !CORE.includes(name) && !name.startsWith('x-'))
const read = (...path: string[]) => readFileSync(join(ROOT, ...path), 'utf8')
const manifest = (name: string) =>
  JSON.parse(read('packages', name, 'package.json')) as Record<string, Record<string, string>> & { name: string }
const sources = globSync(['packages/*/src/**/*.ts', 'qa/src/**/*.ts'], { cwd: ROOT })
const shipped = sources.filter(
  (file) => !file.includes('.test.') && !file.includes('/testing') && !file.startsWith('packages/testkit/') && !file.startsWith('qa/'),
)

describe('the catalogue', () => {
  test('has a row for each feature folder and a folder for each built feature', () => {
    const rows = ROWS.map(([id]) => id as string)
    expect(features.toSorted()).toEqual(rows.toSorted())
  })

  test('has a row for every feature flag of the contract', () => {
    const flags = [
      'channel-fedchat',
      'channel-workchat',
      'channel-relaynet',
      'chatapp-web',
      'voice-wake',
      'hardware',
      'peripheral-sbc',
      'probe',
      'safety',
      'mcp',
      'dashboard',
      'rag-pdf',
      'schedule',
      'skills',
      'browser-native',
      'observability-metrics',
      'observability-otel',
      'plugins-wasm',
      'webauthn',
      'sandbox-userns',
      'sandbox-fsrestrict',
      // Added by decision.
      'provider-google',
      'store-postgres',
      'web',
      'web-push',
    ]
    expect([...new Set(ROWS.flatMap(([, { flag }]) => flag ?? []))].toSorted()).toEqual(flags.toSorted())
  })

  test.each(['minimal', 'standard', 'full'])('the profile %s imports exactly the features of its rows', (profile) => {
    const importsOf = (file: string) => [...read('profiles', file).matchAll(/from '@sluice\/([\w-]+)'/g)].map(([, name]) => name)
    const imported = [...importsOf('always.ts'), ...importsOf(`${profile}.ts`)].filter((name) => name !== 'cli')
    const wanted = ROWS.filter(([, row]) => isInProfile(row, profile)).map(([id]) => id)
    expect(imported.toSorted()).toEqual(wanted.toSorted())
  })

  test('a profile contains only a list of features', () => {
    for (const file of readdirSync(join(ROOT, 'profiles'))) {
      const lines = read('profiles', file).trim().split('\n')
      for (const line of lines) expect(line, file).toMatch(/^(?:import |(?:export )?const \w+ = \[|await main\(|$)/)
    }
  })

  test.each(features)('%s offers the names that its stub lists', async (id) => {
    const { default: feature } = (await import(join(ROOT, 'packages', id, 'src/index.ts'))) as { default: Feature }
    expect(feature.id).toBe(id)
    const parts = feature.build(testHost(), defaultsOf(feature) as never)
    const row: Row = CATALOGUE[id as keyof typeof CATALOGUE]
    expect((parts.tools ?? []).map(({ name }) => name).toSorted()).toEqual([...(row.tools ?? [])].toSorted())
    expect((parts.commands ?? []).map(({ name }) => name).toSorted()).toEqual([...(row.commands ?? [])].toSorted())
    for (const { name, summary, usage, options } of parts.commands ?? [])
      expect({ summary, usage, options }).toEqual(row.commandHelp?.[name])
    expect((parts.providers ?? []).flatMap(({ kinds }) => kinds).toSorted()).toEqual([...(row.kinds ?? [])].toSorted())
    expect(feature.section?.path).toBe(row.section)
    expect(feature.moreSections?.map(({ path }) => path)).toEqual(row.moreSections)
    await parts.close?.()
  })
})

describe('dependencies between packages', () => {
  test.each(features)('%s depends only on the sdk, the kit and its family package', (id) => {
    const shared = Object.keys(FAMILIES)
      .filter((prefix) => id.startsWith(prefix))
      .map((prefix) => FAMILIES[prefix])
    const ours = Object.keys(manifest(id).dependencies ?? {}).filter((name) => name.startsWith('@sluice/'))
    expect(ours).toContain('@sluice/sdk')
    expect(ours.filter((name) => !['@sluice/sdk', '@sluice/kit', ...shared].includes(name))).toEqual([])
  })

  test.each(LAYERS)('%s depends only on earlier layers', (id) => {
    const earlier = LAYERS.slice(0, LAYERS.indexOf(id)).map((name) => `@sluice/${name}`)
    const ours = Object.keys(manifest(id).dependencies ?? {}).filter((name) => name.startsWith('@sluice/'))
    expect(ours.filter((name) => !earlier.includes(name))).toEqual([])
  })

  test.each([...features, ...CORE])('%s imports only dependencies of its package.json', (id) => {
    const { name, dependencies = {}, optionalDependencies = {}, peerDependencies = {}, devDependencies = {} } = manifest(id)
    const known = new Set([name, ...[dependencies, optionalDependencies, peerDependencies].flatMap(Object.keys)])
    const forTests = new Set([
      ...known,
      ...Object.keys(devDependencies),
      'vitest',
      'fast-check',
      'hono',
      'ws',
      'valibot',
      '@hono/node-server',
    ])
    for (const file of sources.filter((path) => path.startsWith(`packages/${id}/`))) {
      const allowed = shipped.includes(file) || id === 'testkit' ? known : forTests
      for (const specifier of importsIn(read(file))) {
        const imported =
          specifier
            .split('/')
            .slice(0, specifier.startsWith('@') ? 2 : 1)
            .join('/') ?? ''
        if (!imported.startsWith('node:'))
          expect(allowed.has(imported) || !shipped.includes(file), `${file} imports ${imported}`).toBe(true)
      }
    }
  })
})

/** Imports of types and imports by `import()` count too: a reader follows them like any other. */
describe('files import each other in one direction', () => {
  const circular = filesInCircles(sources)

  test.each(folders)('%s', (name) => {
    expect(circular.filter((file) => file.startsWith(`packages/${name}/`))).toEqual([])
  })

  test.each([
    ["import { b } from './b.ts'", ['./b.ts']],
    ["import type { B } from './b.ts'", ['./b.ts']],
    ["const { b } = await import('./b.ts')", ['./b.ts']],
    ["type B = typeof import('../b.ts')", ['../b.ts']],
    ["export { b } from './b.ts'", ['./b.ts']],
    ["import { b } from '@sluice/sdk'", []],
  ])('the search for imports finds %j', (source, found) => {
    expect(ownImportsIn(source)).toEqual(found)
  })
})

describe('house rules', () => {
  const only = (pattern: RegExp, homes: readonly string[]) => shipped.filter((file) => pattern.test(read(file)) && !homes.includes(file))

  test('one file makes signatures and compares in constant time', () => {
    expect(only(/\b(timingSafeEqual|createHmac)\b/, ['packages/sdk/src/values/hmac.ts'])).toEqual([])
  })

  test('no other code compares a value made from a secret', () => {
    const operand = String.raw`[\w.?]+(?:\([^()]*\)(?:\.\w+)*)*`
    const comparison = new RegExp(`(${operand}|'[^']*') [!=]==? (${operand}|'[^']*')`, 'g')
    const isSecret = (text = '') => /(?:secret|signature|digest|hmac|\bmac)\w*(?:\(|\.|$)/i.test(text) && !/\.(?:length|size)$/.test(text)
    const isPlain = (text = '') => /^(?:undefined|null|true|false|\d+|'.*')$/.test(text)
    const found = shipped.flatMap((file) =>
      [...read(file).matchAll(comparison)]
        .filter(([, left, right]) => (isSecret(left) && !isPlain(right)) || (isSecret(right) && !isPlain(left)))
        .map(([text]) => `${file}: ${text}`),
    )
    expect(found).toEqual([])
    const home = read('packages/sdk/src/values/hmac.ts')
    expect(home.match(/\btimingSafeEqual\(/g)).toHaveLength(2)
    expect(home).not.toMatch(/\.(?:equals|compare|localeCompare)\(/)
  })

  test('one library reads TOML and another writes it, each in one module', () => {
    const uses = (library: string) => only(new RegExp(`import\\('${library}'\\)|^import (?!type ).*from '${library}'`, 'm'), [])
    expect(uses('toml-eslint-parser')).toEqual(['packages/config/src/toml/toml-document.ts'])
    expect(uses('@iarna/toml')).toEqual(['packages/config/src/edit/write-toml.ts'])
    expect(Object.keys(manifest('config').dependencies ?? {})).toEqual(expect.arrayContaining(['@iarna/toml', 'toml-eslint-parser']))
  })

  test('only scopes combine and limit abort signals, and each is disposed', () => {
    const home = 'packages/kit/src/time/signal-scope.ts'
    expect(only(/AbortSignal\.(?:any|timeout)\(/, [])).toEqual([])
    // A wait for a REPL line is disposable itself and disposes its scope.
    expect(only(/(?<!using \w+ = (?:[^;\n]+ \? )?)signalScope\(/, [home, 'packages/hardware-boards/src/repl/repl-line.ts'])).toEqual([])
  })

  test('only ByteBuffer collects bytes that arrive in pieces', () => {
    expect(only(/Buffer\.concat\((?!\[(?!\.\.\.))/, [])).toEqual([])
    // The platform's own body readers have no bound either.
    const bounded = ['cli/src/commands/webhook-send', 'webauthn/src/page-script'].map((name) => `packages/${name}.ts`)
    expect(only(/response\.(?:arrayBuffer|text|json|bytes|blob)\(\)/, bounded)).toEqual([])
  })

  test('one module of the command line writes to the terminal', () => {
    // start.ts prints only the version, before it loads anything else.
    const homes = ['packages/cli/src/output.ts', 'packages/cli/src/start.ts']
    const writes = /process\.std(?:out|err)\.write|(?:std(?:out|err)|streams\.\w+)\.write\(|console\.\w+\(/
    expect(only(writes, homes).filter((file) => file.startsWith('packages/cli/'))).toEqual([])
  })

  test('one module starts processes', () => {
    const homes = ['run-process', 'process-group', 'companion'].map((name) => `packages/runtime/src/process/${name}.ts`)
    expect(only(/node:child_process/, homes)).toEqual([])
  })

  test('no file exports everything of another, and only a package root re-exports', () => {
    expect(only(/^export \*/m, [])).toEqual([])
    expect(shipped.filter((file) => /\/src\/.+\/index\.ts$/.test(file))).toEqual([])
  })

  test('no module has mutable state', () => {
    expect(only(/^(?:export )?let /m, [])).toEqual([])
    // These weak maps hold state of one object each: the text of a secret, the progress of a request, the health of a channel.
    const homes = [
      'packages/delivery/src/outbox/channel-health.ts',
      'packages/kit/src/platform/request-progress.ts',
      'packages/sdk/src/values/secret.ts',
    ]
    // When each clock was set.
    homes.push('packages/kit/src/time/steady-age.ts')
    // Whether a feature is loaded.
    homes.push('packages/sdk/src/feature/later-feature.ts')
    // In each folder of attachments, one file is stored at a time, and files of earlier releases are moved once.
    homes.push('packages/runtime/src/workspace/attach.ts', 'packages/runtime/src/workspace/settle-attachments.ts')
    // The sizes of attachments, which never change.
    homes.push('packages/runtime/src/workspace/make-room.ts')
    // Keeps the connections that hold a lock from the garbage collector.
    homes.push('packages/store/src/connection/lock-data-dir.ts')
    // Weak maps, too: what is prepared on a connection to PostgreSQL, and whether its transactions end in time.
    homes.push('packages/store-postgres/src/connection/batch.ts', 'packages/store-postgres/src/connection/connection.ts')
    // IndexedDB, which the crypto library of Matrix needs, is a global of the process.
    homes.push('packages/channel-fedchat/src/crypto/indexed-db.ts')
    expect(shipped.filter((file) => mutatedConstants(read(file)).length > 0).toSorted()).toEqual(homes.toSorted())
  })

  test('only PerClient, which is bounded, keeps state per client', () => {
    const homes = ['packages/kit/src/queue/tool-state.ts']
    expect(only(/\b(?:Map|Set|WeakMap|BoundedMap|Record)<\s*ClientId\b/, homes)).toEqual([])
    expect(only(/new PerClient\b/, [])).not.toEqual([])
  })

  test.each([
    ['const SEEN = new Map<string, number>()\n\nexport const note = (key: string) => SEEN.set(key, 1)', ['SEEN']],
    ['export const queue: string[] = []\nexport function put(text: string) {\n  queue.push(text)\n}', ['queue']],
    ['const counts: Record<string, number> = {}\nconst count = (key: string) => {\n  counts[key] = 1\n}', ['counts']],
    ['const NAMES = new Set(["a"])\nconst has = (name: string) => NAMES.has(name)\nfunction f() {\n  const own = []\n  own.push(1)\n}', []],
  ])('the search for mutated constants finds them: %j', (source, found) => {
    expect(mutatedConstants(source)).toEqual(found)
  })

  test('every suppression gives its reason on the same line', () => {
    expect(only(/@ts-(?:ignore|nocheck|expect-error)|biome-ignore [^:\n]*$/m, [])).toEqual([])
  })

  test.each(folders)('%s publishes entries that exist, and none for tests', (name) => {
    const { exports, publishConfig } = JSON.parse(read('packages', name, 'package.json')) as {
      exports: Record<string, string>
      publishConfig: { exports: Record<string, { types: string; default: string }> }
    }
    const sourceOf = (key: string) => exports[key] ?? exports['./*']?.replace('*', key.slice('./'.length)) ?? `no entry ${key}`
    for (const source of Object.values(exports).filter((path) => !path.includes('*')))
      expect(existsSync(join(ROOT, 'packages', name, source)), `packages/${name} exports ${source}`).toBe(true)
    for (const [key, paths] of Object.entries(publishConfig.exports)) {
      const path = sourceOf(key).replace('./src/', './dist/').replace(/\.ts$/, '')
      expect(paths).toEqual({ types: `${path}.d.ts`, default: `${path}.js` })
      expect(path).not.toContain('/testing/')
    }
  })

  test('every package has the same license, module type, scope and Node, and a README', () => {
    for (const name of folders) {
      const { name: packageName, license, type, engines } = JSON.parse(read('packages', name, 'package.json'))
      const node = `>=${NODE_MIN}`
      expect({ packageName, license, type, engines }).toEqual({
        packageName: `@sluice/${name}`,
        license: 'MIT',
        type: 'module',
        engines: { node },
      })
      const readme = `packages/${name}/README.md`
      expect(existsSync(join(ROOT, readme)), `Write ${readme}: a title, a paragraph and an example; then run pnpm docs:generate`).toBe(true)
      expect(existsSync(join(ROOT, 'packages', name, 'tsconfig.json')), `${name} must not have its own tsconfig`).toBe(false)
    }
  })
})

test('each changeset names packages of the workspace, because a release refuses any other name', () => {
  const names = new Set([...folders, 'qa'].map((name) => `@sluice/${name}`))
  const changesets = globSync('.changeset/*.md', { cwd: ROOT }).filter((file) => !file.endsWith('README.md'))
  const named = changesets.flatMap((file) =>
    [...read(file).matchAll(/^["'](.+)["']: (?:patch|minor|major)$/gm)].map(([, name = '']) => ({ file, name })),
  )
  expect(named.filter(({ name }) => !names.has(name))).toEqual([])
})

describe('the documentation', () => {
  const pages = globSync(['docs/**/*.md', 'packages/*/README.md', 'README.md', 'CONTRIBUTING.md', 'SECURITY.md'], { cwd: ROOT })
  const roots = ['bench', 'docs', 'examples', 'firmware', 'packages', 'profiles', 'qa', 'scripts']

  /** Paths that start at the root or, like `agent/src/run/loop.ts`, in a package. Names with `x-` and `channel-zulip` are examples for readers' own features. */
  const pathsIn = (text: string): string[] =>
    [...text.matchAll(/(?<![\w./<~-])[\w-]+(?:\/[\w.*-]+)+(?![\w/<*])/g)]
      .map(([path]) => path.replace(/\.$/, ''))
      .filter((path) => !/^packages\/(?:x-|channel-zulip)/.test(path))
      .filter(
        (path) =>
          roots.includes(path.split('/')[0] ?? '') || (/\.(?:ts|mjs|json|md)$/.test(path) && folders.includes(path.split('/')[0] ?? '')),
      )
  const isThere = (path: string): boolean => globSync([path, `packages/${path}`], { cwd: ROOT }).length > 0

  const anchors = new Map<string, ReadonlySet<string>>()

  /** The anchors that a Markdown page offers for its headings. Thousands of links lead to the long pages, so each page is read once. */
  const anchorsOf = (page: string): ReadonlySet<string> => {
    const known = anchors.get(page)
    if (known) return known
    const titles = [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => title.toLowerCase())
    const found = new Set(titles.map((title) => title.replace(/[^\w\- ]/g, '').replaceAll(' ', '-')))
    anchors.set(page, found)
    return found
  }

  test.each(pages)('names only paths that exist: %s', (page) => {
    expect(pathsIn(read(page)).filter((path) => !isThere(path))).toEqual([])
  })

  test.each(pages)('links only to files and headings that exist: %s', (page) => {
    const links = [...read(page).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)]
    const broken = links.filter(([, target, anchor]) => {
      const file = target ? join(dirname(page), target) : page
      if (!existsSync(join(ROOT, file))) return true
      return anchor !== undefined && !anchorsOf(file).has(anchor)
    })
    expect(broken.map(([link]) => link)).toEqual([])
  })

  test.each(pages)('has as many cells in each row of a table as in its head: %s', (page) => {
    const tables = read(page)
      .replace(/^```[\s\S]*?^```/gm, '')
      .matchAll(/(?:^\|.*\n)+/gm)
    const cells = (row: string): number => row.match(/(?<!\\)\|/g)?.length ?? 0
    const uneven = [...tables].flatMap(([text]) => {
      const [head = '', ...rows] = text.trimEnd().split('\n')
      return rows.filter((row) => cells(row) !== cells(head))
    })
    expect(uneven).toEqual([])
  })

  test('is listed as a whole in its index', () => {
    const index = read('docs/README.md')
    const listed = globSync(['docs/*.md', 'docs/*/README.md'], { cwd: ROOT }).map((file) => file.slice('docs/'.length))
    expect(listed.filter((file) => file !== 'README.md' && !index.includes(`(${file})`))).toEqual([])
  })

  test('has every contract anchor that code, tests and pages name', () => {
    const offered = anchorsOf('docs/contract.md')
    const named = [...sources, ...globSync(['scripts/**/*.mjs', 'profiles/*.ts'], { cwd: ROOT }), ...pages].flatMap((file) =>
      [...read(file).matchAll(/contract\.md#([\w-]+)/g)].map(([, anchor = '']) => ({ file, anchor })),
    )
    expect(named.filter(({ anchor }) => !offered.has(anchor))).toEqual([])
  })

  test.each([
    ['see `packages/sdk/src/gone.ts` and delivery/src/gone.ts.', ['packages/sdk/src/gone.ts', 'delivery/src/gone.ts']],
    ['`packages/<family>-<name>`, `packages/x-dice/src/index.ts`, `./profiles/mine.ts`, ~/.sluice/store/a.md', []],
    ['packages/*/src/testing/vm/*.gone.ts', ['packages/*/src/testing/vm/*.gone.ts']],
    ['`packages/sdk/src/feature/catalogue.ts`, `agent/src/run/loop.ts`, `profiles/always.ts`', []],
  ])('the search for paths finds missing ones: %j', (text, missing) => {
    expect(pathsIn(text).filter((path) => !isThere(path))).toEqual(missing)
  })
})

/** Returns the constants of a module that its own code changes: collections and objects that live as long as the process. */
function mutatedConstants(source: string): string[] {
  const names = [...source.matchAll(/^(?:export )?const (\w+)\b[^=\n]*= (?:new |\[|\{)/gm)].map(([, name = '']) => name)
  const changes = (name: string) =>
    new RegExp(`\\b${name}(?:\\.(?:set|add|push|unshift|splice|delete|clear|keep|forget|update)\\(|\\[[^\\]\n]+\\] (?:=|\\+=|\\?\\?=) )`)
  return names.filter((name) => changes(name).test(source))
}

/** The packages that a source file imports or re-exports. */
const importsIn = (source: string): string[] =>
  [...source.matchAll(/^(?:import .*|export .*|\} )from '([^'.][^']*)'|import\('([^'.][^']*)'\)/gm)].map(
    ([, fixed, lazy]) => fixed ?? lazy ?? '',
  )

/** The relative imports of a source file, those of types and by `import()` included. */
const ownImportsIn = (source: string): string[] =>
  [...source.matchAll(/(?:from |import\()'(\.{1,2}\/[^']+)'/g)].map(([, specifier = '']) => specifier)

/** The files from which relative imports lead back to the same file. */
function filesInCircles(files: readonly string[]): string[] {
  const known = new Set(files)
  const imports = new Map(
    files.map((file) => {
      return [
        file,
        ownImportsIn(read(file))
          .map((specifier) => join(dirname(file), specifier))
          .filter((target) => known.has(target)),
      ]
    }),
  )
  return files.filter((file) => {
    const reached = new Set<string>()
    const next = [...(imports.get(file) ?? [])]
    for (let target = next.pop(); target !== undefined; target = next.pop()) {
      if (target === file) return true
      if (!reached.has(target)) next.push(...(imports.get(target) ?? []))
      reached.add(target)
    }
    return false
  })
}

/** What a section yields when nothing is configured. */
function defaultsOf(feature: Feature): unknown {
  const schema = feature.section?.schema
  if (!schema) return {}
  const result = schema['~run']({ value: {} }, {})
  return result.typed ? result.value : {}
}
