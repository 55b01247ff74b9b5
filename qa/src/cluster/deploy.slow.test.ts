/** The files of deploy/cluster without containers: their scripts, and Debian's nginx in front of three servers that imitate nodes. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, expect, test } from 'vitest'
import { parse } from 'yaml'
import { environment, ROOT } from '../daemons/bundle.ts'
import { debianProgram } from '../debian-program.ts'

const FILES = join(ROOT, 'deploy', 'cluster')
const NODES = ['node-1', 'node-2', 'node-3'] as const
const run = promisify(execFile)

const undo: (() => unknown)[] = []
afterEach(async () => {
  for (const end of undo.splice(0).reverse()) await end()
})

const read = (name: string): string => readFileSync(join(FILES, name), 'utf8')

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-deploy-'))
  undo.push(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return typeof address === 'object' && address ? address.port : 0
}

test('the services of compose.yaml use files that exist, and nginx knows each node', () => {
  const { services, secrets, volumes } = parse(read('compose.yaml'), { merge: true })
  expect(Object.keys(services).toSorted()).toEqual([...NODES, 'postgres', 'proxy', 'shared'])
  for (const { volumes: mounts } of Object.values<{ volumes: string[] }>(services))
    for (const [source = ''] of mounts.map((mount) => mount.split(':'))) {
      if (source.startsWith('./')) expect(read(source)).not.toBe('')
      else expect(Object.keys(volumes)).toContain(source)
    }
  for (const name of NODES) {
    expect(services[name].environment).toEqual({ SVC_CLUSTER_NODE: name })
    expect(Object.keys(services[name].depends_on)).toEqual(['postgres', 'shared'])
    expect(read('nginx.conf')).toContain(`server ${name}:42617 `)
  }
  expect(Object.keys(secrets)).toEqual(services.postgres.secrets)
})

test('every node starts with the configuration, the address of the database and one key, which later starts keep', async () => {
  const folder = newFolder()
  const user = `${process.getuid?.()}:${process.getgid?.()}`
  const here = (name: string, node = ''): string => {
    const file = join(folder, `${node}${name}`)
    const text = read(name)
      .replaceAll('/data/', `${folder}/${node}/`)
      .replaceAll('/config.toml ', `${join(FILES, 'config.toml')} `)
      .replaceAll('/run/secrets', folder)
      .replaceAll('/shared', `${folder}/shared`)
      .replaceAll('10001:10001', user)
    writeFileSync(file, text)
    return file
  }
  writeFileSync(join(folder, 'postgres-password'), 'a-password\n')
  mkdirSync(join(folder, 'bin'))
  writeFileSync(join(folder, 'bin', 'sluice'), '#!/bin/sh\necho "$@ $SVC_STORE_URL"\n')
  chmodSync(join(folder, 'bin', 'sluice'), 0o755)
  const env = environment({ PATH: `${join(folder, 'bin')}:${process.env.PATH}` })
  const keys = new Set<string>()
  for (let start = 0; start < 2; start++) {
    await run('/bin/sh', [here('shared.sh')], { env })
    for (const node of NODES) {
      mkdirSync(join(folder, node), { recursive: true })
      const { stdout } = await run('/bin/sh', [here('node.sh', node)], { env })
      expect(stdout).toBe('daemon postgres://sluice:a-password@postgres/sluice\n')
      expect(readFileSync(join(folder, node, 'config.toml'), 'utf8')).toBe(read('config.toml'))
      keys.add(readFileSync(join(folder, node, 'secret.key'), 'utf8'))
    }
  }
  expect([...keys]).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/)])
})

test('nginx keeps sessions together, spreads the rest, passes over a dead node and sends no message twice', {
  timeout: 60_000,
}, async (context) => {
  const nginx = await debianProgram({ packages: ['nginx-light', 'nginx-common'], program: 'usr/sbin/nginx' })
  if ('missing' in nginx) return context.skip(nginx.missing)
  const folder = newFolder()
  const seen: { readonly node: string; readonly headers: IncomingMessage['headers'] }[] = []
  const breaking = new Set<string>()
  const servers = NODES.map((node) =>
    createServer((request, response) => {
      seen.push({ node, headers: request.headers })
      request.resume().on('end', () => (breaking.has(node) ? request.socket.destroy() : response.end(node)))
    }),
  )
  const ports = await Promise.all(servers.map(listen))
  undo.push(() => Promise.all(servers.map((server) => server.close().closeAllConnections())))
  const spare = createServer()
  const port = await listen(spare)
  spare.close()
  await once(spare, 'close')
  const site = NODES.reduce((text, node, at) => text.replace(`${node}:42617`, `127.0.0.1:${ports[at]}`), read('nginx.conf'))
  writeFileSync(join(folder, 'site.conf'), site.replace('listen 42617', `listen 127.0.0.1:${port}`))
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${folder}/${kind};`).join(' ')
  const http = `http { access_log off; ${temporary} include ${folder}/site.conf; }`
  const user = process.getuid?.() === 0 ? 'user root;' : ''
  writeFileSync(join(folder, 'nginx.conf'), `${user} daemon off; pid ${folder}/nginx.pid; error_log stderr; events {} ${http}\n`)
  const args = ['-p', folder, '-c', join(folder, 'nginx.conf')]
  const proxy = spawn(nginx.path, args, { stdio: 'ignore', env: environment({ ...nginx.env }) })
  undo.push(async () => {
    proxy.kill('SIGTERM')
    await once(proxy, 'exit')
  })
  const ask = (method: string, headers = {}) =>
    fetch(`http://127.0.0.1:${port}/webhook`, { method, headers: { ...headers, 'x-forwarded-for': '203.0.113.9' } })
  await expect.poll(async () => (await ask('GET').catch(() => undefined))?.status).toBe(200)
  const nodeOf = async (method: string, headers = {}): Promise<string> => (await ask(method, headers)).text()

  const spread = new Set<string>()
  for (let count = 0; count < 40; count++) spread.add(await nodeOf('POST'))
  expect([...spread].toSorted()).toEqual(NODES)
  const session = { 'x-session-id': 'one' }
  const [home = ''] = [await nodeOf('POST', session)]
  for (let count = 0; count < 10; count++) expect(await nodeOf('POST', session)).toBe(home)
  expect(seen.at(-1)?.headers).toMatchObject({ 'x-forwarded-for': '127.0.0.1', 'x-forwarded-proto': 'http' })

  // A node that breaks after it has the message may have stored it.
  breaking.add(home)
  const before = seen.length
  expect((await ask('POST', session)).status).toBe(502)
  expect(seen.length).toBe(before + 1)
  expect(await nodeOf('GET', session)).not.toBe(home)
  servers[(NODES as readonly string[]).indexOf(home)]?.close().closeAllConnections()
  for (let count = 0; count < 20; count++) expect((await ask('POST')).status).toBe(200)
})
