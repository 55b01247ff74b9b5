/** Every public package as npm delivers it: its tarball is complete, its types resolve, and it works after `npm install`. */
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { checkPackage, createPackageFromTarballData, Package } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadedBy } from './import-cost.ts'
import { packagesIn } from './imports-in.ts'
import { isPermissive, licenceProblems } from './licences.ts'
import { installAll, type PackedPackage, readManifest } from './packed.ts'

const ROOT = resolve(import.meta.dirname, '../../..')
const folders = globSync('packages/*/package.json', { cwd: ROOT })
  .filter((file) => JSON.parse(readFileSync(join(ROOT, file), 'utf8')).private !== true)
  .map((file) => file.split('/')[1] ?? '')
/** The channels whose entry `./webhook` needs no other package. The one of mailpush checks JSON Web Tokens with libraries. */
const webhooks = ['channel-bizchat', 'channel-chatapp', 'channel-roomchat', 'channel-textrelay', 'channel-webhook']

let installed: Awaited<ReturnType<typeof installAll>>
beforeAll(async () => {
  installed = await installAll()
}, 600_000)
// A busy disk takes minutes to remove what was installed.
afterAll(() => installed?.[Symbol.dispose](), 600_000)

function packed(id: string): PackedPackage {
  const found = installed.packages.find((each) => each.id === id)
  if (!found) throw new Error(`packages/${id} was not packed`)
  return found
}

/** Returns the problems that importers of ES modules have with the types of a package. Only Node 24 and bundlers count. */
async function typeProblems(pkg: Package): Promise<string[]> {
  const result = await checkPackage(pkg)
  if (!result.types) return ['the package has no types']
  return result.problems
    .filter((problem) => !('resolutionKind' in problem) || !['node10', 'node16-cjs'].includes(problem.resolutionKind))
    .map((problem) => JSON.stringify(problem))
}

const bytesOf = (file: string) => new Uint8Array(readFileSync(file))

describe.each(folders)('packages/%s', (id) => {
  test('publint and the check of its types find nothing', async () => {
    const bytes = bytesOf(packed(id).file)
    const { messages, pkg } = await publint({ pack: { tarball: bytes.buffer }, strict: true })
    expect(messages.map((message) => formatMessage(message, pkg, { color: false }))).toEqual([])
    expect(await typeProblems(createPackageFromTarballData(bytes))).toEqual([])
  })

  test('has its modules, declarations, README and licence, and nothing made for tests', () => {
    const folder = installed.folderOf(packed(id))
    const files = globSync('**/*', { cwd: folder, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
      // npm puts a dependency here whose version differs from the one of another package.
      .filter((file) => !file.startsWith('node_modules/'))
    const { exports } = readManifest(folder)
    const entries = Object.values(exports).flatMap((entry) => [entry.types, entry.default])
    for (const file of ['README.md', 'LICENSE', 'package.json', ...entries.map((path) => path.slice('./'.length))])
      expect(files).toContain(file)
    // The dashboard serves its page from the folder of the same name.
    const code = id === 'dashboard' ? /^dist\/(?:dashboard\/|.*\.(?:js|d\.ts)$)/ : /^dist\/.*\.(?:js|d\.ts)$/
    const others = files.filter((file) => !code.test(file) && !['README.md', 'LICENSE', 'package.json'].includes(file))
    expect(others).toEqual([])
    // The test kit is made of fakes for tests of other packages.
    const forTests = id === 'testkit' ? /\.test\.|\/fixtures\// : /\.test\.|\/testing\/|\/fixtures\/|fake/
    expect(files.filter((file) => forTests.test(file))).toEqual([])
  })

  test('names the exact versions of other packages here, and everything that it imports', () => {
    const folder = installed.folderOf(packed(id))
    const { name, keywords, license, dependencies = {}, optionalDependencies = {}, peerDependencies = {} } = readManifest(folder)
    const versions = { ...dependencies, ...optionalDependencies }
    for (const [dependency, version] of Object.entries(versions)) {
      expect(version, dependency).toMatch(/^\d+\.\d+\.\d+/)
      if (dependency.startsWith('@sluice/')) expect(version).toBe(packed(dependency.slice('@sluice/'.length)).version)
    }
    const declared = [name, ...Object.keys(versions), ...Object.keys(peerDependencies)]
    expect(packagesIn(folder).filter((imported) => !declared.includes(imported))).toEqual([])
    expect(license).toBe('MIT')
    expect(keywords).toContain('sluice')
  })
})

test('the checks find a package that is broken', async () => {
  const manifest = { name: 'broken', version: '1.0.0', type: 'module', exports: { '.': { types: './index.d.ts', default: './gone.js' } } }
  const text = JSON.stringify(manifest)
  const { messages } = await publint({ pkgDir: 'package', pack: { files: [{ name: 'package/package.json', data: text }] }, strict: true })
  expect(messages).not.toEqual([])
  const files = { '/node_modules/broken/package.json': text, '/node_modules/broken/index.d.ts': 'import "./index2"; export = 1' }
  expect(await typeProblems(new Package(files, 'broken', '1.0.0'))).not.toEqual([])
})

test('the API reference has the present declarations', () => {
  const { stderr, status } = spawnSync(process.execPath, [join(ROOT, 'scripts/api-docs.mjs'), '--check'], { encoding: 'utf8' })
  expect(stderr).toBe('')
  expect(status).toBe(0)
})

describe('all packages installed with npm', () => {
  const specifiers = () =>
    installed.packages.flatMap((each) => Object.keys(readManifest(installed.folderOf(each)).exports).map((key) => each.name + key.slice(1)))

  test('every entry loads in Node without a build step', () => {
    const source = specifiers().map((specifier) => `await import(${JSON.stringify(specifier)})`)
    const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', source.join('\n')], {
      cwd: installed.app,
      encoding: 'utf8',
    })
    expect(stderr).toBe('')
    expect(status).toBe(0)
  })

  test('TypeScript finds no error in the declarations', () => {
    const source = specifiers().map((specifier, index) => `import * as module${index} from '${specifier}'\nvoid module${index}`)
    writeFileSync(join(installed.app, 'all.ts'), source.join('\n'))
    expect(typeErrors('all.ts')).toEqual([])
  })

  test('TypeScript finds no error in the examples of the READMEs', () => {
    const examples = installed.packages.flatMap((each) => {
      const blocks = [...readFileSync(join(installed.folderOf(each), 'README.md'), 'utf8').matchAll(/^```ts\n(.*?)^```$/gms)]
      return blocks.map(([, code = ''], index) => ({ file: `example-${each.id}-${index}.ts`, code }))
    })
    for (const { file, code } of examples) writeFileSync(join(installed.app, file), `${code}\nexport {}\n`)
    expect(examples.length).toBeGreaterThan(10)
    expect(typeErrors(...examples.map(({ file }) => file))).toEqual([])
  })

  test.each(webhooks)('@sluice/%s/webhook loads only itself and the sdk', (id) => {
    const others = loadedBy(installed.app, `@sluice/${id}/webhook`).filter(
      (url) => !url.startsWith('node:') && !url.includes(`/node_modules/@sluice/${id}/`) && !url.includes('/node_modules/@sluice/sdk/'),
    )
    expect(others).toEqual([])
  })

  test('the search for loaded modules finds the modules of a whole channel', () => {
    expect(loadedBy(installed.app, '@sluice/channel-chatapp').join()).toContain('/node_modules/valibot/')
  })

  test('the import of @sluice/channel-chatapp/webhook reads at most 20 files with 96 KiB', () => {
    const files = loadedBy(installed.app, '@sluice/channel-chatapp/webhook').filter((url) => url.startsWith('file:'))
    const bytes = files.reduce((sum, url) => sum + statSync(fileURLToPath(url)).size, 0)
    expect({ few: files.length <= 20, small: bytes <= 96 * 1024 }, `${files.length} files with ${bytes} bytes`).toEqual({
      few: true,
      small: true,
    })
  })

  test('every dependency has a permissive licence', () => {
    expect(['GPL-3.0', 'MIT AND LGPL-2.1', 'SEE LICENSE IN x'].filter(isPermissive)).toEqual([])
    expect(isPermissive('(MIT OR GPL-3.0)')).toBe(true)
    expect(licenceProblems(installed.app)).toEqual([])
  })
})

/** Checks files of the installation strictly, with the types of Node. Returns the errors outside of other authors' packages. */
function typeErrors(...files: readonly string[]): string[] {
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024', '--skipLibCheck', 'false', '--pretty', 'false']
  const types = ['--types', 'node', '--typeRoots', join(ROOT, 'node_modules/@types')]
  const tsc = join(ROOT, 'node_modules/.bin/tsc')
  const { stdout } = spawnSync(tsc, [...options, ...types, ...files], { cwd: installed.app, encoding: 'utf8' })
  return stdout.split('\n').filter((line) => /error TS/.test(line) && !/^node_modules\/(?!@sluice\/)/.test(line))
}
