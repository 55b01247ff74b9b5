import { execFileSync } from 'node:child_process'
import { cp, link, mkdir, readdir, rename, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { AppError, type Host } from '@sluice/sdk'
import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { pluginsSection } from './config.ts'
import { PluginInstaller } from './install.ts'
import { PluginFolder } from './plugin-folder.ts'
import { ENTRIES_MAX } from './read-tar.ts'
import { manifestFor, newFolder, newPublisher, writePlugin } from './testing/new-plugin.ts'
import { type TarEntry, tarGz, tarOf } from './testing/tar.ts'
import { importOf, moduleOf } from './testing/wasm-text.ts'

const MODULE = moduleOf()
const URL_TEXT = 'https://example.com/echo.tar.gz'
let root: string

beforeEach(async () => {
  root = await newFolder()
})

afterEach(async () => {
  await rm(root, { recursive: true, force: true })
})

const arrange = (security: object = {}, answer?: Uint8Array | Response) => {
  const config = v.parse(pluginsSection.schema, { plugins_dir: join(root, 'plugins'), security })
  const fetched: string[] = []
  const publicFetch: Host['publicFetch'] = async (url, init) => {
    fetched.push(url)
    init?.admit?.(new URL(url))
    return answer instanceof Response ? answer : new Response(new Uint8Array(answer ?? []))
  }
  const folder = PluginFolder.of(root, config)
  const installer = new PluginInstaller(publicFetch, config, folder)
  const from = (source: string) => installer.install(source, root, new AbortController().signal)
  return { from, folder, fetched }
}

const packed = (manifest: object | string = manifestFor(MODULE), module: Uint8Array = MODULE, more: readonly TarEntry[] = []) => [
  { name: 'manifest.json', content: typeof manifest === 'string' ? manifest : JSON.stringify(manifest) },
  { name: 'plugin.wasm', content: module },
  ...more,
]

/** Returns every file and folder below `root`, without the staging folder. */
const tree = async (): Promise<string[]> => (await readdir(root, { recursive: true })).filter((path) => path !== 'plugins/.staging').sort()

const INSTALLED = ['plugins', 'plugins/echo', 'plugins/echo/manifest.json', 'plugins/echo/plugin.wasm', 'plugins/echo/source.json']

const refusal = (from: Promise<unknown>): Promise<AppError> =>
  from.then(
    () => {
      throw new Error('The plugin was installed')
    },
    (error: unknown) => {
      expect(error).toBeInstanceOf(AppError)
      return error as AppError
    },
  )

describe('install from an archive on this machine', () => {
  test('installs it like an archive from a URL', async () => {
    const file = join(root, 'echo.tar.gz')
    await writeFile(file, gzipSync(tarOf(packed())))
    const { from, fetched } = arrange({ signature_mode: 'off' })
    await from(file)
    await rm(file)
    expect(await tree()).toEqual(INSTALLED)
    expect(fetched).toEqual([])
  })

  test('requires the signature of a trusted publisher', async () => {
    const file = join(root, 'echo.tar.gz')
    await writeFile(file, gzipSync(tarOf(packed())))
    expect((await refusal(arrange().from(file))).message).toBe(
      (await refusal(arrange({}, gzipSync(tarOf(packed()))).from(URL_TEXT))).message,
    )
  })

  test('refuses a missing or broken archive', async () => {
    const { from } = arrange({ signature_mode: 'off' })
    expect((await refusal(from(join(root, 'none.tar.gz')))).message).toBe(`The file ${join(root, 'none.tar.gz')} does not exist`)
    await writeFile(join(root, 'broken.tgz'), 'no gzip')
    expect((await refusal(from(join(root, 'broken.tgz')))).message).toBe('The archive is not a .tar.gz file')
  })
})

describe('install from a folder', () => {
  const written = (manifest: unknown = manifestFor(MODULE), module: Uint8Array = MODULE) =>
    writePlugin(join(root, 'source'), manifest, module)

  test('copies only the two files, readable only by the owner', async () => {
    const { from, folder } = arrange()
    const source = await written()
    await writeFile(join(source, 'more.txt'), 'x')
    expect(await from(source)).toMatchObject({ trust: 'unsigned' })
    expect(await folder.read('echo')).toMatchObject({ source, manifest: { name: 'echo' } })
    expect((await stat(join(root, 'plugins/echo'))).mode & 0o077).toBe(0)
    await rm(source, { recursive: true })
    expect(await tree()).toEqual(INSTALLED)
  })

  test('refuses a second plugin of the same name', async () => {
    const { from, folder } = arrange()
    await from(await written())
    const other = moduleOf({ memories: [[0, 2]] })
    expect(await refusal(from(await written(manifestFor(other, { version: '2' }), other)))).toMatchObject({ code: 'conflict' })
    expect((await folder.read('echo')).manifest.version).toBe('1.0.0')
    await folder.remove('echo')
    await from(await written(manifestFor(other, { version: '2' }), other))
    expect((await folder.read('echo')).manifest.version).toBe('2')
  })

  test('installs one of several parallel installs of a plugin', async () => {
    const { from } = arrange()
    const source = await written()
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => from(source)))
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    await rm(source, { recursive: true })
    expect(await tree()).toEqual(INSTALLED)
  })

  test('parallel installs and removals do not disturb each other', async () => {
    const { from, folder } = arrange()
    const names = Array.from({ length: 24 }, (_, index) => `echo_${index}`)
    const installAndRemove = async (name: string) => {
      await from(await writePlugin(join(root, name), manifestFor(MODULE, { name }), MODULE))
      await folder.remove(name)
    }
    await Promise.all(names.map(installAndRemove))
    expect(await folder.names()).toEqual([])
  })

  test('names a missing file and its folder', async () => {
    const { from } = arrange()
    const source = await written()
    const message = async (path: string) => (await refusal(from(path))).message
    expect(await message(join(root, 'nowhere'))).toBe(`The folder ${join(root, 'nowhere')} does not exist`)
    expect(await message(join(source, 'plugin.wasm'))).toBe(`${join(source, 'plugin.wasm')} is neither a folder nor a .tar.gz file`)
    await rm(join(source, 'plugin.wasm'))
    expect(await message(source)).toBe(`${source} has no file plugin.wasm`)
    await rm(join(source, 'manifest.json'))
    expect(await message(source)).toBe(`${source} has no file manifest.json`)
    expect((await refusal(arrange({}, tarGz([])).from(URL_TEXT))).message).toBe('The archive has no file manifest.json')
  })

  test('refuses a name that is taken by anything else in the folder', async () => {
    const { from } = arrange()
    await mkdir(join(root, 'plugins'))
    await symlink('/etc', join(root, 'plugins/echo'))
    expect(await refusal(from(await written()))).toMatchObject({ code: 'conflict' })
  })

  /** Replaces the module or manifest by what `make` creates. */
  const replace =
    (name: string, make: (path: string, aside: string) => unknown) =>
    async (source: string): Promise<unknown> => {
      const path = join(source, name)
      await rename(path, `${path}.aside`)
      return make(path, `${path}.aside`)
    }

  test.each<[string, (source: string) => Promise<unknown>]>([
    ['a missing folder', (source) => rm(source, { recursive: true })],
    [
      'a file',
      (source) =>
        rename(join(source, 'manifest.json'), `${source}.file`)
          .then(() => rm(source, { recursive: true }))
          .then(() => rename(`${source}.file`, source)),
    ],
    ['a folder without a manifest', (source) => rm(join(source, 'manifest.json'))],
    ['a folder without a module', (source) => rm(join(source, 'plugin.wasm'))],
    ['a manifest that is a link', replace('manifest.json', (path, aside) => symlink(aside, path))],
    ['a module that is a link', replace('plugin.wasm', (path, aside) => symlink(aside, path))],
    ['a module that is a folder', replace('plugin.wasm', (path) => mkdir(path))],
    ['a module that is a device', replace('plugin.wasm', (path) => symlink('/dev/zero', path))],
    ['a module that is a pipe', replace('plugin.wasm', (path) => execFileSync('mkfifo', [path]))],
    ['a module that is too large', (source) => writeFile(join(source, 'plugin.wasm'), Buffer.alloc(8_388_609))],
    ['a manifest that is too large', (source) => writeFile(join(source, 'manifest.json'), `{"a":"${'x'.repeat(20_000)}"}`)],
    ['another module', (source) => writeFile(join(source, 'plugin.wasm'), moduleOf({ memories: [[0, 3]] }))],
  ])('refuses %s and leaves no files', async (_, change) => {
    const { from } = arrange()
    const source = await written()
    await change(source)
    await refusal(from(source))
    await rm(source, { recursive: true, force: true })
    expect((await tree()).filter((path) => path !== 'plugins')).toEqual([])
  })

  const LONG = 'x'.repeat(65)
  test.each<[string, Record<string, unknown> | string]>([
    ['invalid JSON', '{"name": "echo"'],
    ['a list', '[]'],
    ['null', 'null'],
    ['a text', '"echo"'],
    ['invalid UTF-8', '\ud800'],
    ['100,000 nested lists', '['.repeat(100_000)],
    ['a prototype', `{"__proto__": {"name": "echo"}}`],
    ['an unknown key', { more: 1 }],
    ['a key with terminal escapes', { 'more\u009b2J\u202e': 1 }],
    ['a very long key', { ['a'.repeat(10_000)]: 1 }],
    ['an own member __proto__', `${JSON.stringify(manifestFor(MODULE)).slice(0, -1)}, "__proto__": {"a": 1}}`],
    ...[
      '..',
      '../echo',
      'a/b',
      '/etc',
      'a\\b',
      '.',
      '',
      'a.b',
      'a-b',
      'Echo',
      'écho',
      'echo\0',
      'echo\n',
      '_echo',
      'echo_',
      'e__o',
      '1echo',
      ' echo',
      LONG,
      'ⅰ',
      '．．',
    ].map((name): [string, Record<string, unknown>] => [`the name ${JSON.stringify(name)}`, { name }]),
    ['the name of a tool', { name: 'shell' }],
    ['the name of a tool of another build', { name: 'pdf_read' }],
    ['a name that is not a text', { name: ['echo'] }],
    ...[
      '../plugin.wasm',
      '/etc/passwd',
      'a/plugin.wasm',
      '..\\plugin.wasm',
      'plugin.exe',
      '.wasm',
      'plugin.wasm\0',
      'a'.repeat(200),
      'manifest.json',
      'source.json',
    ].map((wasm_path): [string, Record<string, unknown>] => [`the module ${JSON.stringify(wasm_path)}`, { wasm_path }]),
    ['no description', { description: '' }],
    ['a description in two lines', { description: 'a\nb' }],
    ['a description with a direction override', { description: 'a\u202eb' }],
    ['a description with an invisible character', { description: 'a\u200bb' }],
    ['a description with terminal escapes', { description: 'a\u001b[2Jb' }],
    ['a description of 1001 characters', { description: 'a'.repeat(1001) }],
    ['a version that is a path', { version: '../1' }],
    ['an unknown permission', { permissions: ['files'] }],
    ['a repeated permission', { permissions: ['network', 'network'] }],
    ['a digest of the wrong length', { sha256: 'abc' }],
    ['a digest in upper case', { sha256: 'A'.repeat(64) }],
    ['a key without a signature', { publisher_key: 'a'.repeat(64) }],
    ['a signature without a key', { signature: 'A'.repeat(86) }],
    ['a signature that is too short', { publisher_key: 'a'.repeat(64), signature: 'AAAA' }],
    ['a signature with extra bits', { publisher_key: 'a'.repeat(64), signature: `${'A'.repeat(85)}B` }],
    ['a signature with an invalid key', { publisher_key: 'f'.repeat(64), signature: 'A'.repeat(86) }],
  ])('refuses a manifest with %s and leaves no files', async (_, manifest) => {
    const { from } = arrange({ signature_mode: 'off' })
    const source = await written({})
    const text = typeof manifest === 'string' ? manifest : JSON.stringify({ ...manifestFor(MODULE), ...manifest })
    await writeFile(join(source, 'manifest.json'), text)
    expect((await refusal(from(source))).message).toMatch(/^\P{C}{1,300}$/u)
    await rm(source, { recursive: true })
    expect((await tree()).filter((path) => path !== 'plugins')).toEqual([])
  })

  test('refuses an import without the permission for it', async () => {
    const { from } = arrange()
    const module = moduleOf({ imports: [importOf('env', 'sluice_http')] })
    expect((await refusal(from(await written(manifestFor(module), module)))).message).toMatch(/imports 'env.sluice_http'/)
    await from(await written(manifestFor(module, { permissions: ['network'] }), module))
  })
})

describe('install from a URL', () => {
  const open = { signature_mode: 'off' }

  test.each<[string, readonly TarEntry[]]>([
    ['two files', packed()],
    ['a common folder', packed().map((entry) => ({ ...entry, name: `echo-1.0/${entry.name}` }))],
    ['names that begin with ./', [{ name: './', type: '5' }, ...packed().map((entry) => ({ ...entry, name: `./${entry.name}` }))]],
    [
      'more files',
      packed(undefined, undefined, [
        { name: 'docs/README.md', content: 'x' },
        { name: 'docs/', type: '5' },
      ]),
    ],
    ['times in an extended header', [{ name: 'pax', type: 'x', content: '20 mtime=123.456789\n' }, ...packed()]],
    ['a prefix', packed().map((entry) => ({ ...entry, prefix: 'echo-1.0' }))],
  ])('installs an archive with %s', async (_, entries) => {
    const { from, folder, fetched } = arrange(open, tarGz(entries))
    await from(`${URL_TEXT}?key=abc`)
    expect(fetched).toEqual([`${URL_TEXT}?key=abc`])
    expect((await folder.read('echo')).source).toBe(URL_TEXT)
    expect(await tree()).toEqual(INSTALLED)
  })

  test('installs archives that tar creates', async () => {
    const source = await writePlugin(join(root, 'source'), manifestFor(MODULE), MODULE)
    for (const args of [['--format=ustar'], ['--format=gnu'], ['--format=pax']]) {
      const archive = execFileSync('tar', [...args, '-cz', '-C', source, 'manifest.json', 'plugin.wasm'])
      const { from, folder } = arrange(open, archive)
      await from(URL_TEXT)
      await folder.remove('echo')
    }
  })

  const file = (name: string, more: Partial<TarEntry> = {}): TarEntry => ({ name, content: 'x', ...more })
  const among = (entry: TarEntry): Buffer => gzipSync(tarOf(packed(undefined, undefined, [entry])))
  const before = (entry: TarEntry): Buffer => gzipSync(tarOf([entry, ...packed()]))
  const pax = (record: string, type = 'x'): TarEntry => ({
    name: 'pax',
    type,
    content: `${`${record.length + 4}`.padStart(2)} ${record}\n`,
  })

  test('installs an archive with the attributes of macOS', async () => {
    const provenance = ['LIBARCHIVE.xattr.com.apple.provenance=AQIA', 'SCHILY.xattr.com.apple.provenance=\x01\x02\0']
    const entries = packed().flatMap((entry) => [
      ...provenance.map((record) => pax(record)),
      file(`._${entry.name}`),
      ...provenance.map((record) => pax(record)),
      entry,
    ])
    await arrange(open, gzipSync(tarOf(entries))).from(URL_TEXT)
  })

  test.each<[string, Buffer]>([
    ...[
      '../evil',
      '..',
      'a/../../evil',
      'a/..',
      '/etc/evil',
      '//evil',
      './../evil',
      'a//b',
      'a/./b',
      '..\\evil',
      'C:\\evil',
      'C:evil',
      '\\\\host\\evil',
    ].map((name): [string, Buffer] => [`the name ${name}`, among(file(name))]),
    ...['a\nb', 'a\u001bb', 'a\u007fb', 'caf\u00e9', '\u2024\u2024/evil', 'a /b', 'a./b', 'CON:', 'a*', '~/evil', '$HOME/x', 'a|b'].map(
      (name): [string, Buffer] => [`the name ${JSON.stringify(name)}`, among(file(name))],
    ),
    ['a name with a NUL', among(file('ok\0../evil'))],
    ['an empty name', among(file(''))],
    ['the name of a folder', among(file('./'))],
    ['a prefix of ..', among(file('evil', { prefix: '..' }))],
    ['an absolute prefix', among(file('evil', { prefix: '/etc' }))],
    ['a name that is too long', among(file('a'.repeat(100), { prefix: 'b'.repeat(155) }))],
    ['a symbolic link', among(file('link', { type: '2', content: '', link: '/etc/passwd' }))],
    [
      'a symbolic link instead of the module',
      gzipSync(tarOf([...packed().slice(0, 1), { name: 'plugin.wasm', type: '2', link: '/etc/passwd' }])),
    ],
    ['a link and a file inside it', gzipSync(tarOf([{ name: 'out', type: '2', link: '/tmp' }, file('out/evil'), ...packed()]))],
    ['a hard link', among(file('link', { type: '1', content: '', link: 'manifest.json' }))],
    ['a file with a link target', among(file('link', { link: '/etc/passwd' }))],
    ['a character device', among(file('device', { type: '3', content: '' }))],
    ['a block device', among(file('device', { type: '4', content: '' }))],
    ['a pipe', among(file('pipe', { type: '6', content: '' }))],
    ['a contiguous file', among(file('more', { type: '7' }))],
    ['a long name in the format of GNU', before({ name: '././@LongLink', type: 'L', content: '../evil\0' })],
    ['a long link in the format of GNU', before({ name: '././@LongLink', type: 'K', content: '/etc/passwd\0' })],
    ['a sparse file', among(file('sparse', { type: 'S' }))],
    ['a multi-volume file', among(file('volume', { type: 'M' }))],
    ['an unknown kind of entry', among(file('odd', { type: 'Z' }))],
    ['an extended path', before(pax('path=../evil'))],
    ['a global extended path', before(pax('path=../evil', 'g'))],
    ['an extended link', before(pax('linkpath=/etc'))],
    ['an extended size', before(pax('size=99999'))],
    ['an extended sparse map', before(pax('GNU.sparse.name=x'))],
    ['an extended attribute', before(pax('SCHILY.xattr.security.capability=x'))],
    ['a malformed extended header', before({ name: 'pax', type: 'x', content: 'nonsense' })],
    ['an extended header of length 0', before({ name: 'pax', type: 'x', content: '0 mtime=1\n' })],
    ['the same name twice', among(file('plugin.wasm'))],
    ['the same name in another case', among(file('PLUGIN.WASM'))],
    ['the same name in another spelling', among(file('./plugin.wasm'))],
    ['the same name as folder and file', among({ name: 'plugin.wasm/', type: '5' })],
    ['a folder with content', among({ name: 'folder/', type: '5', content: 'x' })],
    ['a size beyond its end', among(file('more', { size: '77777777777\0' }))],
    ['a negative size', among(file('more', { size: '-0000000001\0' }))],
    ['a size in base 256', among(file('more', { size: '\x80\0\0\0\0\0\0\0\0\0\0\x01' }))],
    ['a size that is not a number', among(file('more', { size: 'twelve bytes' }))],
    ['a wrong checksum', among(file('more', { checksum: '000000\0 ' }))],
    ['another magic', among(file('more', { magic: 'zipped' }))],
    ['too many entries', gzipSync(tarOf([...packed(), ...Array.from({ length: ENTRIES_MAX }, (_, index) => file(`f${index}`))]))],
    ['data after its end', gzipSync(Buffer.concat([tarOf(packed()), Buffer.from('more')]))],
    ['a second archive after its end', gzipSync(Buffer.concat([tarOf(packed()), tarOf([file('../evil')])]))],
    ['a missing end', gzipSync(tarOf(packed(), Buffer.alloc(0)))],
    ['half of its bytes', gzipSync(tarOf(packed()).subarray(0, 700))],
    ['no entries', gzipSync(tarOf([]))],
    ['a gzip bomb', gzipSync(Buffer.alloc(64 * 1024 * 1024))],
    ['a nested gzip bomb', gzipSync(gzipSync(Buffer.alloc(64 * 1024 * 1024)))],
    ['a large file that is not the module', among(file('large', { content: Buffer.alloc(17 * 1024 * 1024) }))],
    ['a module that is too large', gzipSync(tarOf([...packed().slice(0, 1), { name: 'plugin.wasm', content: Buffer.alloc(8_388_609) }]))],
    ['a truncated gzip stream', tarGz(packed()).subarray(0, 200)],
    ['a tar file without gzip', tarOf(packed())],
    ['a zip file', Buffer.from('PK\x03\x04')],
    ['no bytes', Buffer.alloc(0)],
    [
      'files in two folders',
      gzipSync(
        tarOf([
          { ...(packed()[0] as TarEntry), name: 'a/manifest.json' },
          { ...(packed()[1] as TarEntry), name: 'b/plugin.wasm' },
        ]),
      ),
    ],
    ['only a manifest', gzipSync(tarOf(packed().slice(0, 1)))],
    ['a module of another name', gzipSync(tarOf(packed(manifestFor(MODULE, { wasm_path: 'other.wasm' }))))],
  ])('refuses an archive with %s and leaves no files', async (_, archive) => {
    const { from } = arrange(open, archive)
    await writeFile(join(root, 'canary'), 'x')
    await refusal(from(URL_TEXT))
    expect((await tree()).filter((path) => path !== 'plugins')).toEqual(['canary'])
  })

  test.each(['http://example.com/a.tar.gz', 'file:///etc/passwd', 'ftp://example.com/a', 'https://', 'HTTP://example.com/a.tar.gz'])(
    'refuses to install from %s',
    async (url) => {
      await refusal(arrange(open, tarGz(packed())).from(url))
    },
  )

  test('refuses an answer other than 200', async () => {
    expect(await refusal(arrange(open, new Response('gone', { status: 404 })).from(URL_TEXT))).toMatchObject({ code: 'upstream' })
  })

  test('requires a trusted signature by default, at install and at load', async () => {
    const publisher = newPublisher()
    const signed = tarGz(packed(manifestFor(MODULE, {}, publisher)))
    expect((await refusal(arrange({}, tarGz(packed())).from(URL_TEXT))).message).toMatch(/The plugin is not signed.*required_for_urls/)
    expect((await refusal(arrange({}, signed).from(URL_TEXT))).message).toMatch(/is not in trusted_publisher_keys/)
    expect(await tree()).not.toContain('plugins/echo')
    const trusted = arrange({ trusted_publisher_keys: [publisher.key] }, signed)
    expect(await trusted.from(URL_TEXT)).toMatchObject({ trust: 'trusted' })
    expect(await trusted.folder.read('echo')).toMatchObject({ trust: 'trusted' })
    await expect(arrange().folder.read('echo')).rejects.toMatchObject({ code: 'forbidden' })
  })
})

describe('signatures', () => {
  const publisher = newPublisher()
  const signed = manifestFor(MODULE, {}, publisher)
  const trusting = { trusted_publisher_keys: [publisher.key] }

  test.each<[string, Record<string, unknown>]>([
    ['name', { name: 'other' }],
    ['version', { version: '1.0.1' }],
    ['description', { description: 'Something else.' }],
    ['permissions', { permissions: ['network'] }],
    ['publisher', { publisher_key: newPublisher().key }],
    ['signature', { signature: String(signed.signature).replace(/^./, (first) => (first === 'A' ? 'B' : 'A')) }],
  ])('refuses a signature in every mode when this changed: %s', async (_, change) => {
    for (const signature_mode of ['required', 'required_for_urls', 'off']) {
      const source = await writePlugin(join(root, 'source'), { ...signed, ...change }, MODULE)
      expect((await refusal(arrange({ ...trusting, signature_mode }).from(source))).message).toBe('The signature is not valid')
    }
  })

  test('the signature covers the module', async () => {
    const source = await writePlugin(join(root, 'source'), signed, moduleOf({ memories: [[0, 2]] }))
    expect((await refusal(arrange(trusting).from(source))).message).toMatch(/differs from sha256 in the manifest/)
  })

  test('the mode `required` also applies to folders', async () => {
    const mode = { signature_mode: 'required' }
    const source = await writePlugin(join(root, 'source'), manifestFor(MODULE), MODULE)
    expect((await refusal(arrange(mode).from(source))).message).toMatch(/The plugin is not signed/)
    await writePlugin(source, signed, MODULE)
    expect((await refusal(arrange(mode).from(source))).message).toMatch(/not in trusted_publisher_keys/)
    expect(await arrange({ ...mode, ...trusting }).from(source)).toMatchObject({ trust: 'trusted' })
  })

  test('refuses an invalid key in the configuration', () => {
    for (const key of ['abc', 'A'.repeat(64), '']) {
      expect(v.safeParse(pluginsSection.schema, { security: { trusted_publisher_keys: [key] } }).success).toBe(false)
    }
  })
})

describe('PluginFolder', () => {
  test.each([
    [undefined, '/data/plugins'],
    ['own', '/data/own'],
    ['/srv/plugins', '/srv/plugins'],
    ['~/plugins', join(homedir(), 'plugins')],
    ['~other/plugins', '/data/~other/plugins'],
  ])('resolves plugins_dir %s to %s', (plugins_dir, path) => {
    const config = v.parse(pluginsSection.schema, plugins_dir === undefined ? {} : { plugins_dir })
    expect(PluginFolder.of('/data', config).path).toBe(path)
  })

  const installed = async (signature_mode = 'off') => {
    const setting = arrange({ signature_mode })
    await setting.from(await writePlugin(join(root, 'source'), manifestFor(MODULE), MODULE))
    return setting
  }

  test('remove deletes all files of the plugin and nothing else', async () => {
    const { folder } = await installed()
    await symlink(join(root, 'source'), join(root, 'plugins/echo/link'))
    await link(join(root, 'source/plugin.wasm'), join(root, 'plugins/echo/hard'))
    await folder.remove('echo')
    expect(await tree()).toEqual(['plugins', 'source', 'source/manifest.json', 'source/plugin.wasm'])
  })

  test.each(['..', '.', '', '../source', '/etc', 'nothing', '.staging', 'echo/', 'echo/..', 'a\0'])(
    'does not find %j to read or remove',
    async (name) => {
      const { folder } = await installed()
      await expect(folder.remove(name)).rejects.toMatchObject({ code: 'not_found' })
      await expect(folder.read(name)).rejects.toMatchObject({ code: 'not_found' })
    },
  )

  test('does not accept a link as a plugin', async () => {
    const { folder } = await installed()
    await symlink(join(root, 'source'), join(root, 'plugins/other'))
    expect(await folder.names()).toEqual(['echo'])
    await expect(folder.read('other')).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(folder.remove('other')).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('refuses a plugin whose files or folder name were changed', async () => {
    const { folder } = await installed()
    await cp(join(root, 'plugins/echo'), join(root, 'plugins/renamed'), { recursive: true })
    await expect(folder.read('renamed')).rejects.toMatchObject({ message: "The manifest in the folder 'renamed' has the name 'echo'" })
    await writeFile(join(root, 'plugins/echo/plugin.wasm'), moduleOf({ memories: [[0, 2]] }))
    await expect(folder.read('echo')).rejects.toMatchObject({ code: 'forbidden' })
  })

  test('its stamp changes only when plugins are added or removed', async () => {
    const { folder, from } = arrange({ signature_mode: 'off' })
    const none = await folder.stamp()
    await from(await writePlugin(join(root, 'source'), manifestFor(MODULE), MODULE))
    const one = await folder.stamp()
    expect(one).not.toBe(none)
    await folder.read('echo')
    expect(await folder.stamp()).toBe(one)
    await folder.remove('echo')
    expect(await folder.stamp()).not.toBe(one)
  })

  test('deletes old files of interrupted commands', async () => {
    const { folder } = await installed()
    const left = join(root, 'plugins/.staging/left')
    await mkdir(left)
    await folder.remove('echo')
    expect(await readdir(join(root, 'plugins/.staging'))).toEqual(['left'])
    await utimes(left, new Date(0), new Date(0))
    await installed()
    expect(await readdir(join(root, 'plugins/.staging'))).toEqual([])
  })

  test('an install that cannot write leaves no files', async () => {
    const { from, folder } = await installed()
    await folder.remove('echo')
    // A file in place of the staging folder stops even root, which may write anywhere.
    await rm(join(root, 'plugins/.staging'), { recursive: true })
    await writeFile(join(root, 'plugins/.staging'), '')
    await expect(from(join(root, 'source'))).rejects.toMatchObject({ code: 'EEXIST' })
    expect((await tree()).filter((path) => path.startsWith('plugins/'))).toEqual([])
  })
})
