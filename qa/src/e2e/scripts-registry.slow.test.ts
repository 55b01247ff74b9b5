/** The first installation of a clone from a registry whose certificate only npm's settings know, as behind the proxy of a company. */
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ROOT } from '../daemons/bundle.ts'

const INSTALL_MS_MAX = 120_000
/** Before the rule of pnpm that a package must have an age. */
const PUBLISHED = '2020-01-01T00:00:00.000Z'

let root: string
let registry: string
const cleanups: (() => void)[] = []

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'sluice-registry-'))
  cleanups.push(() => rmSync(root, { recursive: true, force: true }))
  registry = await serveRegistry()
  cpSync(join(ROOT, 'scripts'), join(root, 'scripts'), { recursive: true })
  mkdirSync(join(root, 'packages'))
  writeFileSync(join(root, 'package.json'), JSON.stringify({ private: true, devDependencies: { 'sluice-tiny': '1.0.0' } }))
  writeFileSync(join(root, 'pnpm-workspace.yaml'), 'packages: []\npmOnFail: ignore\n')
})
afterEach(() => {
  for (const clean of cleanups.splice(0).reverse()) clean()
})

const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: root, stdio: 'pipe' })

/** Serves one package over TLS, with a certificate that a certificate authority of its own has signed. */
async function serveRegistry(): Promise<string> {
  const key = ['-newkey', 'rsa:2048', '-nodes', '-days', '2']
  openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=Company')
  openssl('req', ...key.slice(0, 3), '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=localhost')
  writeFileSync(join(root, 'names'), 'subjectAltName=DNS:localhost\n')
  const signing = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', 'names']
  openssl('x509', '-req', '-in', 'server.csr', '-out', 'server.pem', ...signing)
  mkdirSync(join(root, 'tiny/package'), { recursive: true })
  writeFileSync(join(root, 'tiny/package/package.json'), JSON.stringify({ name: 'sluice-tiny', version: '1.0.0' }))
  execFileSync('tar', ['-czf', 'tiny.tgz', '-C', 'tiny', 'package'], { cwd: root })
  const archive = readFileSync(join(root, 'tiny.tgz'))
  const integrity = `sha512-${createHash('sha512').update(archive).digest('base64')}`
  const server = createServer({ key: readFileSync(join(root, 'server.key')), cert: readFileSync(join(root, 'server.pem')) })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `https://localhost:${(server.address() as AddressInfo).port}`
  server.on('request', ({ url: path }, response) => {
    if (path?.endsWith('.tgz')) return response.end(archive)
    if (path !== '/sluice-tiny') return response.writeHead(404).end('{}')
    const dist = { tarball: `${url}/tiny.tgz`, integrity }
    const versions = { '1.0.0': { name: 'sluice-tiny', version: '1.0.0', dist } }
    const time = { created: PUBLISHED, modified: PUBLISHED, '1.0.0': PUBLISHED }
    return response.end(JSON.stringify({ name: 'sluice-tiny', 'dist-tags': { latest: '1.0.0' }, versions, time }))
  })
  cleanups.push(() => {
    server.close()
    server.closeAllConnections()
  })
  return url
}

/** Installs with settings in npm's global file. The registry runs in this process, so the installation must not block it. */
function install(
  settings: string,
  variables: Readonly<Record<string, string>> = {},
): Promise<{ readonly code: number | null; readonly err: string }> {
  const globalFile = join(root, 'global-npmrc')
  writeFileSync(globalFile, settings)
  const { PATH, SVC_TOOLCHAIN_DIR, XDG_CACHE_HOME = join(homedir(), '.cache') } = process.env
  // A pnpm that answers too slowly for its version is fetched, and the registry has none.
  const toolchain = SVC_TOOLCHAIN_DIR ?? join(XDG_CACHE_HOME, 'sluice')
  const settingsOfNpm = { npm_config_globalconfig: globalFile, pnpm_config_fetch_retries: '0' }
  const env = { HOME: root, PATH, SVC_TOOLCHAIN_DIR: toolchain, ...settingsOfNpm, ...variables }
  const child = spawn(process.execPath, [join(root, 'scripts/bootstrap.mjs'), 'update-lockfile'], { cwd: root, env })
  let err = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text))
  cleanups.push(() => child.kill('SIGKILL'))
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, err })))
}

test("pnpm gets the registry and the certificate from npm's global file", { timeout: INSTALL_MS_MAX }, async () => {
  const { code, err } = await install(`registry=${registry}/\ncafile=${join(root, 'ca.pem')}\n`)
  expect(code, err).toBe(0)
  expect(JSON.parse(readFileSync(join(root, 'node_modules/sluice-tiny/package.json'), 'utf8'))).toMatchObject({ version: '1.0.0' })
})

test('an untrusted certificate ends the installation with the cure', { timeout: INSTALL_MS_MAX }, async () => {
  const { code, err } = await install(`registry=${registry}/\n`)
  expect(code).not.toBe(0)
  expect(err).toMatch(/is not trusted \((?:SELF_SIGNED|UNABLE_TO|self-signed|unable to).+\)\n.*npm config set cafile/)
})

test('an untrusted certificate ends the download of Node with the cure', { timeout: INSTALL_MS_MAX }, async () => {
  const toolchain = join(root, 'toolchain')
  const { code, err } = await install(`registry=${registry}/\n`, { SVC_FORCE_TOOLCHAIN: '1', SVC_TOOLCHAIN_DIR: toolchain })
  expect(code).not.toBe(0)
  expect(err).toMatch(/is not trusted \((?:SELF_SIGNED|UNABLE_TO|self-signed|unable to).+\)\n.*npm config set cafile/)
})
