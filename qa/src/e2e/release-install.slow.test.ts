/** The script that installs a release, against a server on loopback: the files that it installs, and its refusal of everything else. */
import { spawn } from 'node:child_process'
import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create } from 'tar'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ROOT } from '../daemons/bundle.ts'

interface Script {
  readonly version: string
  readonly downloads: string
  readonly publicKey: string
}
const { installScript } = (await import(join(ROOT, 'scripts/release/install-script.mjs'))) as { installScript(script: Script): string }

const ARCHIVE = 'sluice-0.3.0-standard.tar.gz'
const key = generateKeyPairSync('ed25519')
const otherKey = generateKeyPairSync('ed25519')
const publicKey = key.publicKey.export({ type: 'spki', format: 'pem' }) as string

/** The files of the release, as the server sends them. */
let files: Map<string, Buffer>
/** The number of bytes after which the server ends the answer for a file. */
let cutAfter: Map<string, number>
let requested: string[]
let folder: string
let server: Server

const sumsOf = (names: readonly string[]) =>
  names
    .map(
      (name) =>
        `${createHash('sha256')
          .update(files.get(name) ?? '')
          .digest('hex')}  ${name}\n`,
    )
    .join('')

function publish(sums: string, signer = key.privateKey) {
  files.set('SHA256SUMS', Buffer.from(sums))
  files.set('SHA256SUMS.sig', sign(null, Buffer.from(sums), signer))
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-get-'))
  const build = join(folder, 'sluice-0.3.0-standard')
  mkdirSync(build)
  writeFileSync(join(build, 'install.sh'), `#!/bin/sh\necho "installed with $*" >'${folder}/installed'\n`, { mode: 0o755 })
  await create({ file: join(folder, ARCHIVE), cwd: folder, gzip: true, portable: true }, ['sluice-0.3.0-standard'])
  files = new Map([[ARCHIVE, readFileSync(join(folder, ARCHIVE))]])
  cutAfter = new Map()
  requested = []
  publish(sumsOf([ARCHIVE]))
  server = createServer(({ url = '' }, response) => {
    const name = url.slice(url.lastIndexOf('/') + 1)
    requested.push(name)
    const bytes = files.get(name)
    if (!bytes) return response.writeHead(404).end()
    response.writeHead(200, { 'content-length': bytes.length })
    const cut = cutAfter.get(name)
    if (cut === undefined) return response.end(bytes)
    return response.write(bytes.subarray(0, cut), () => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterEach(() => {
  server.closeAllConnections()
  server.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Makes a folder with only these programs of the machine, to be the PATH. */
function pathWith(programs: readonly string[]): string {
  const bin = mkdtempSync(join(folder, 'bin-'))
  for (const program of programs) {
    const found = (process.env.PATH ?? '').split(':').find((each) => existsSync(join(each, program)))
    if (found !== undefined) symlinkSync(join(found, program), join(bin, program))
  }
  return bin
}
const NEEDED = ['sh', 'cat', 'cut', 'gzip', 'id', 'mktemp', 'rm', 'sed', 'tar'] as const
const ALL = [...NEEDED, 'curl', 'openssl', 'sha256sum'] as const

interface Options {
  readonly args?: readonly string[]
  readonly programs?: readonly string[]
  /** The PATH; unless given, a folder with the programs. */
  readonly path?: string
  readonly script?: string
  readonly downloads?: string
}

/** Runs the script as `curl … | sh -s -- --standard` does. */
async function get({ args = ['--standard'], programs = ALL, path = pathWith(programs), script, downloads }: Options = {}) {
  const address = downloads ?? `http://127.0.0.1:${(server.address() as AddressInfo).port}/v0.3.0`
  const temporary = mkdtempSync(join(folder, 'tmp-'))
  const env = { PATH: path, TMPDIR: temporary, HOME: folder }
  const child = spawn(join(path, 'sh'), ['-s', '--', ...args], { env })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text) => {
    stderr += text
  })
  child.stdin.on('error', () => undefined).end(script ?? installScript({ version: '0.3.0', downloads: address, publicKey }))
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  expect(readdirSync(temporary)).toEqual([])
  const marker = join(folder, 'installed')
  return { code, stderr, installed: existsSync(marker) ? readFileSync(marker, 'utf8').trim() : undefined }
}

describe('the script that installs a release', { timeout: 120_000 }, () => {
  test('installs the chosen profile, and passes its options on', async () => {
    expect(await get({ args: ['--standard', '--prefix', '/x y'] })).toMatchObject({
      code: 0,
      installed: 'installed with --standard --prefix /x y',
    })
    expect(requested).toEqual(['SHA256SUMS', 'SHA256SUMS.sig', ARCHIVE])
  })

  test('works with wget in place of curl', async () => {
    expect(await get({ programs: [...NEEDED, 'wget', 'openssl', 'sha256sum'] })).toMatchObject({ code: 0, installed: expect.any(String) })
  })

  test('installs where no file of the temporary folder can be executed', async () => {
    chmodSync(join(folder, 'sluice-0.3.0-standard/install.sh'), 0o644)
    await create({ file: join(folder, ARCHIVE), cwd: folder, gzip: true, portable: true }, ['sluice-0.3.0-standard'])
    files.set(ARCHIVE, readFileSync(join(folder, ARCHIVE)))
    publish(sumsOf([ARCHIVE]))
    expect(await get()).toMatchObject({ code: 0, installed: 'installed with --standard' })
  })

  test('says that openssl is too old to check the signature, and nothing about the signature', async () => {
    const path = pathWith([...NEEDED, 'curl', 'sha256sum'])
    // As OpenSSL 1.1.1 does: its `pkeyutl` has no -rawin, and its help goes to stderr.
    const usage =
      "case \"$*\" in *-rawin*) echo 'pkeyutl: Option unknown option -rawin' >&2; exit 1 ;; *-help*) echo ' -verify' >&2 ;; esac"
    writeFileSync(join(path, 'openssl'), `#!/bin/sh\n${usage}\n`, { mode: 0o755 })
    const { code, stderr, installed } = await get({ path })
    expect([code, installed]).toEqual([1, undefined])
    expect(stderr).toContain('this openssl cannot check Ed25519 signatures')
    expect(stderr).not.toContain('is not the one of the release key')
  })

  test('ends with the exit code of the installer', async () => {
    const build = join(folder, 'sluice-0.3.0-standard')
    writeFileSync(join(build, 'install.sh'), '#!/bin/sh\nexit 7\n')
    chmodSync(join(build, 'install.sh'), 0o755)
    await create({ file: join(folder, ARCHIVE), cwd: folder, gzip: true, portable: true }, ['sluice-0.3.0-standard'])
    files.set(ARCHIVE, readFileSync(join(folder, ARCHIVE)))
    publish(sumsOf([ARCHIVE]))
    expect(await get()).toMatchObject({ code: 7 })
  })

  test('refuses checksums that another key signed, before it downloads the archive', async () => {
    publish(sumsOf([ARCHIVE]), otherKey.privateKey)
    expect(await get()).toMatchObject({
      code: 1,
      installed: undefined,
      stderr: expect.stringContaining('is not the one of the release key'),
    })
    expect(requested).not.toContain(ARCHIVE)
  })

  test('refuses checksums that were changed after they were signed', async () => {
    files.set('SHA256SUMS', Buffer.from(`${sumsOf([ARCHIVE])}\n`))
    expect(await get()).toMatchObject({
      code: 1,
      installed: undefined,
      stderr: expect.stringContaining('is not the one of the release key'),
    })
  })

  test('refuses an archive with another checksum', async () => {
    const bytes = Buffer.from(files.get(ARCHIVE) ?? '')
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
    files.set(ARCHIVE, bytes)
    expect(await get()).toMatchObject({ code: 1, installed: undefined, stderr: expect.stringContaining('does not have the SHA-256') })
  })

  test('refuses the signed files of another release', async () => {
    files.set('sluice-0.2.0-standard.tar.gz', files.get(ARCHIVE) ?? Buffer.alloc(0))
    publish(sumsOf(['sluice-0.2.0-standard.tar.gz']))
    expect(await get()).toMatchObject({ code: 1, installed: undefined, stderr: expect.stringContaining('the files of another release') })
  })

  test.each([
    ['SHA256SUMS', 10],
    ['SHA256SUMS.sig', 10],
    [ARCHIVE, 100],
  ])('refuses %s if its download is cut', async (name, bytes) => {
    cutAfter.set(name, bytes)
    expect(await get()).toMatchObject({ code: 1, installed: undefined, stderr: expect.stringContaining(`${name} could not be downloaded`) })
  })

  test('says what could not be downloaded', async () => {
    files.delete(ARCHIVE)
    expect(await get()).toMatchObject({
      code: 1,
      installed: undefined,
      stderr: expect.stringContaining(`${ARCHIVE} could not be downloaded`),
    })
  })

  test('does nothing if its own download was cut', async () => {
    const script = installScript({ version: '0.3.0', downloads: 'http://127.0.0.1:9', publicKey })
    expect(await get({ script: script.slice(0, script.lastIndexOf('main')) })).toMatchObject({ stderr: '', installed: undefined })
  })

  test.each([
    ['openssl', 'openssl is not installed'],
    ['sha256sum', 'neither sha256sum nor shasum is installed'],
    ['curl', 'neither curl nor wget is installed'],
    ['tar', 'tar is not installed'],
    ['gzip', 'gzip is not installed'],
  ])('says that %s is missing, and installs nothing', async (program, reason) => {
    const result = await get({ programs: ALL.filter((each) => each !== program) })
    expect(result).toMatchObject({ code: 1, installed: undefined, stderr: expect.stringContaining(reason) })
    expect(requested).toEqual([])
  })

  test('asks for the address if the release does not know it', async () => {
    expect(await get({ downloads: '' })).toMatchObject({ code: 1, stderr: expect.stringContaining('SLUICE_DOWNLOADS is missing') })
  })

  test('no value can leave its quotes', () => {
    expect(() => installScript({ version: '0.3.0', downloads: "https://x/'; rm -rf ~; '", publicKey })).toThrow(
      /DOWNLOADS cannot be quoted/,
    )
  })
})
