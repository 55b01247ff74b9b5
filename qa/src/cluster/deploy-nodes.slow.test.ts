/**
 * Three daemons that the files of deploy/cluster start and configure, behind Debian's nginx, with messages of two platforms and subscribers
 * over server-sent events and WebSockets, while one is stopped and another is killed.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { chatappRequest, startChatappFake } from '@sluice/channel-chatapp/testing'
import { startTelegramFake, TELEGRAM_TOKEN } from '@sluice/channel-telegram/testing'
import { startPostgres } from '@sluice/store-postgres/testing/postgres-server'
import pg from 'pg'
import { afterEach, expect, test } from 'vitest'
import { environment, ROOT } from '../daemons/bundle.ts'
import { debianProgram } from '../debian-program.ts'
import { TTL_MS } from './faults.ts'
import { followNodes } from './follow-nodes.ts'

const FILES = join(ROOT, 'deploy', 'cluster')
const PROGRAM = process.env.SLUICE_CLUSTER_PROGRAM ?? join(ROOT, 'profiles', 'full.ts')
const NODES = ['node-1', 'node-2', 'node-3'] as const
const WAIT_MS = 150_000
/**
 * The work of a node that stops is elsewhere within a second, and that of a dead one a second after its leases have ended. All processes
 * share one machine here, which may be busy.
 */
const BUSY_MS_MAX = 500
const STOPPED_MS_MAX = 1_000 + BUSY_MS_MAX
const KILLED_MS_MAX = TTL_MS + 1_000 + BUSY_MS_MAX
const SUBSCRIBERS = 4
const SHARDS = 256
/** The shards that the node owns, and the shards that others own with the listener of Telegram. */
const OWNED = `
  SELECT coalesce(sum(shard_to - shard_from + 1) FILTER (WHERE node = $1), 0)::int AS own,
    coalesce(sum(shard_to - shard_from + 1) FILTER (WHERE node <> $1), 0)::int AS others,
    count(*) FILTER (WHERE node = $1 AND shard_from IS NULL AND name LIKE '%telegram%')::int AS listens,
    count(*) FILTER (WHERE node <> $1 AND shard_from IS NULL AND name LIKE '%telegram%')::int AS elsewhere
  FROM sluice.leases JOIN sluice.processes ON processes.id = leases.process`
const run = promisify(execFile)

const undo: (() => unknown)[] = []
afterEach(async () => {
  for (const end of undo.splice(0).reverse()) await end()
})

const read = (name: string): string => readFileSync(join(FILES, name), 'utf8')

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address ? address.port : 0
}

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + WAIT_MS
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`not in time: ${what}`)
    await sleep(25)
  }
}

function start(program: string, args: readonly string[], env: Record<string, string>): { child: ChildProcess; text: () => string } {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env: environment(env) })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data) => (text += String(data)))
  undo.push(() => child.kill('SIGKILL'))
  return { child, text: () => text }
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  const exited = once(child, 'exit')
  child.kill(signal)
  return (await exited)[0]
}

/** Follows events over WebSockets. Like the dashboard, it connects again after the last event that it got. */
async function followSocket(url: string, ids: string[], token: string, signal: AbortSignal): Promise<number> {
  let connections = 0
  while (!signal.aborted) {
    const last = ids.at(-1)
    const query = last === undefined ? '' : `?last_event_id=${last}`
    const socket = new WebSocket(`${url.replace('http', 'ws')}/ws/events${query}`, ['sluice.v1', `bearer.${token}`])
    const leave = (): void => socket.close()
    signal.addEventListener('abort', leave)
    socket.addEventListener('open', () => connections++)
    socket.addEventListener('message', ({ data }) => {
      const { id, type } = JSON.parse(String(data))
      if (id !== undefined && type !== 'gap') ids.push(id)
    })
    await once(socket, 'close')
    signal.removeEventListener('abort', leave)
    await sleep(100)
  }
  return connections
}

/** A message of the platform, which repeats it until it is taken. */
async function deliver(url: string, id: string): Promise<void> {
  const message = { from: `1555000${id.slice(-4)}`, id, timestamp: String(Math.floor(Date.now() / 1000)), type: 'text', text: { body: id } }
  const value = {
    messaging_product: 'whatsapp',
    metadata: { display_phone_number: '15550001111', phone_number_id: '200000000000002' },
    contacts: [{ profile: { name: 'Ada' }, wa_id: message.from }],
    messages: [message],
  }
  const payload = { object: 'whatsapp_business_account', entry: [{ id: '100000000000001', changes: [{ field: 'messages', value }] }] }
  const { path, headers, body } = chatappRequest(Buffer.from(JSON.stringify(payload)))
  const send = () => fetch(`${url}${path}`, { method: 'POST', headers: Object.fromEntries(headers ?? []), body: body ?? '' })
  await until(`${id} is taken`, async () => (await send().catch(() => undefined))?.status === 200)
}

test('nothing is lost behind nginx while one node is stopped and another one is killed', { timeout: 600_000 }, async (context) => {
  const nginx = await debianProgram({ packages: ['nginx-light', 'nginx-common'], program: 'usr/sbin/nginx' })
  if ('missing' in nginx) return context.skip(nginx.missing)
  const folder = mkdtempSync(join(tmpdir(), 'sluice-deploy-'))
  undo.push(() => rmSync(folder, { recursive: true, force: true }))
  const server = await startPostgres({ inMemory: true })
  undo.push(() => server.stop())
  const database = new pg.Client(server.url)
  await database.connect()
  undo.push(() => database.end())
  await database.query("CREATE ROLE sluice LOGIN PASSWORD 'p'")
  await database.query('CREATE DATABASE sluice OWNER sluice')
  const platform = await startChatappFake()
  undo.push(() => platform.close())

  // The paths and names of the containers, on this machine.
  const password = join(folder, 'postgres-password')
  writeFileSync(password, 'p\n')
  const here = (text: string, node: string): string =>
    text
      .replaceAll('/run/secrets/postgres-password', password)
      .replaceAll('@postgres/', `@127.0.0.1:${server.port}/`)
      .replaceAll('/config.toml /data', `${join(folder, 'config.toml')} ${join(folder, node)}`)
      .replaceAll('/data/', `${join(folder, node)}/`)
      .replaceAll('/shared', join(folder, 'shared'))
      .replaceAll('10001:10001', `${process.getuid?.()}:${process.getgid?.()}`)
  const bot = await startTelegramFake()
  undo.push(() => bot.close())
  const channel = `[channels_config.telegram]
bot_token = "${TELEGRAM_TOKEN}"
allowed_users = ["*"]
api_url = "${bot.url}"

[channels_config.chatapp]
access_token = "chatapp-fake-token"
phone_number_id = "200000000000002"
verify_token = "verify"
app_secret = "chatapp-app-secret-01"
allowed_numbers = ["*"]
api_url = "${platform.url}"
`
  // Commands are not run here, and the sandbox depends on the machine.
  writeFileSync(
    join(folder, 'config.toml'),
    `${here(read('config.toml'), '').replace('required = true', 'required = false')}\n${channel}`,
    { mode: 0o600 },
  )
  mkdirSync(join(folder, 'bin'))
  writeFileSync(join(folder, 'bin', 'sluice'), `#!/bin/sh\nexec '${process.execPath}' '${PROGRAM}' "$@"\n`)
  chmodSync(join(folder, 'bin', 'sluice'), 0o755)
  writeFileSync(join(folder, 'shared.sh'), here(read('shared.sh'), ''))
  await run('/bin/sh', [join(folder, 'shared.sh')])
  const key = readFileSync(join(folder, 'shared', 'secret.key'), 'utf8')
  await run('/bin/sh', [join(folder, 'shared.sh')])
  expect(readFileSync(join(folder, 'shared', 'secret.key'), 'utf8')).toBe(key)

  const ports = new Map<string, number>()
  const env = (name: string): Record<string, string> => ({
    PATH: `${join(folder, 'bin')}:${process.env.PATH}`,
    SVC_DATA_DIR: join(folder, name),
    SVC_CLUSTER_NODE: name,
    SVC_GATEWAY_HOST: '127.0.0.1',
    SVC_GATEWAY_PORT: String(ports.get(name)),
    NODE_COMPILE_CACHE: join(ROOT, 'node_modules', '.cache', 'sluice', 'sources'),
  })
  const startNode = (name: string) => start('/bin/sh', [join(folder, `${name}.sh`)], env(name))
  for (const name of NODES) {
    ports.set(name, await freePort())
    mkdirSync(join(folder, name), { mode: 0o700 })
    writeFileSync(join(folder, `${name}.sh`), here(read('node.sh'), name))
  }
  const [first, second, third] = [startNode('node-1'), startNode('node-2'), startNode('node-3')]
  const isReady = async (name: string): Promise<boolean> =>
    (await fetch(`http://127.0.0.1:${ports.get(name)}/ready`).catch(() => undefined))?.status === 200
  for (const [at, name] of NODES.entries())
    await until(`${name} is ready`, () => isReady(name)).catch((error: unknown) => {
      throw new Error([first, second, third][at]?.text() ?? '', { cause: error })
    })

  const front = await freePort()
  const sites = NODES.reduce((text, name) => text.replace(`${name}:42617`, `127.0.0.1:${ports.get(name)}`), read('nginx.conf'))
  writeFileSync(join(folder, 'site.conf'), sites.replace('listen 42617', `listen 127.0.0.1:${front}`))
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${folder}/${kind};`).join(' ')
  const main = `${process.getuid?.() === 0 ? 'user root;' : ''} daemon off; pid ${folder}/nginx.pid; error_log stderr; events {}
http { access_log ${folder}/access.log; ${temporary} include ${folder}/site.conf; }`
  writeFileSync(join(folder, 'nginx.conf'), main)
  const proxy = start(nginx.path, ['-p', folder, '-c', join(folder, 'nginx.conf')], nginx.env)
  // A killed nginx leaves its workers behind.
  undo.push(() => proxy.child.exitCode ?? end(proxy.child, 'SIGTERM'))
  const url = `http://127.0.0.1:${front}`
  await until('nginx listens', async () => (await fetch(`${url}/ready`).catch(() => undefined))?.status === 200).catch((error: unknown) => {
    throw new Error(proxy.text(), { cause: error })
  })

  const client = new pg.Client(`${server.url.replace(/[^/]*$/, '')}sluice`)
  await client.connect()
  undo.push(() => client.end())
  const owned = async (name: string) => (await client.query(OWNED, [name])).rows[0]
  /** Resolves to the time until everything of the node is elsewhere. */
  const handedOver = async (name: string): Promise<number> => {
    const startedMs = performance.now()
    await until(`the work of ${name} is elsewhere`, async () => {
      const { others, elsewhere } = await owned(name)
      return others === SHARDS && elsewhere === 1
    })
    return performance.now() - startedMs
  }
  const command = (...args: readonly string[]) =>
    run('/bin/sh', [join(folder, 'bin', 'sluice'), ...args], {
      env: environment({ ...env('node-3'), SVC_STORE_URL: `postgres://sluice:p@127.0.0.1:${server.port}/sluice` }),
    })
  const token = (await command('pair', 'token', '--name', 'phone')).stdout.trim()

  // Any node may have any subscriber.
  const over = new AbortController()
  undo.push(() => over.abort())
  const followed: string[][] = Array.from({ length: 2 * SUBSCRIBERS }, () => [])
  const following = followed.map((got, at) =>
    at < SUBSCRIBERS ? followNodes(() => url, got, over.signal, token) : followSocket(url, got, token, over.signal),
  )
  const noted: string[] = []
  const note = async (): Promise<void> => {
    const init = {
      method: 'POST',
      body: '{"type":"note"}',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    }
    // Only a program on the machine of a node may add events, so not by the proxy.
    for (const port of ports.values()) {
      const answer = await fetch(`http://127.0.0.1:${port}/api/channel-events`, init).catch(() => undefined)
      if (answer?.status !== 200) continue
      noted.push(((await answer.json()) as { readonly event_id: string }).event_id)
      return
    }
  }

  const ids = Array.from({ length: 90 }, (_, at) => `wamid.${String(at).padStart(4, '0')}`)
  const said: string[] = []
  const later = async (from: number, to: number): Promise<void> => {
    for (const id of ids.slice(from, to)) {
      const text = `said ${id}`
      bot.say({ from: { id: 2001 + said.length }, text })
      said.push(text)
      await Promise.all([deliver(url, id), note(), sleep(100)])
    }
  }
  /** The name of the node that listens to Telegram, so that its listener moves. */
  const listening = async (among: readonly string[]): Promise<string> => {
    for (const name of among) if ((await owned(name)).listens === 1) return name
    throw new Error('nobody listens')
  }
  const running = new Map([
    ['node-1', first],
    ['node-2', second],
    ['node-3', third],
  ])
  await until('all shards are owned', async () => (await owned('')).others === SHARDS)
  await until('all subscribers follow', async () => {
    await note()
    return followed.every((got) => got.length > 0)
  })
  noted.length = 0
  await later(0, 20)
  const stops = await listening(NODES)
  const ending = running.get(stops)
  if (!ending) throw new Error(stops)
  const [stoppedMs, stopped] = await Promise.all([handedOver(stops), end(ending.child, 'SIGTERM'), later(20, 45)])
  expect(stopped).toBe(0)
  const killed = await listening(NODES.filter((name) => name !== stops))
  const dying = running.get(killed)
  if (!dying) throw new Error(killed)
  const [killedMs] = await Promise.all([handedOver(killed), end(dying.child, 'SIGKILL'), later(45, 75)])
  running.delete(stops)
  const again = startNode(killed)
  running.set(killed, again)
  await later(75, 90)
  const count = async (condition: string): Promise<number> =>
    (await client.query(`SELECT count(*)::int AS count FROM sluice.${condition}`)).rows[0].count
  await until('all is kept', async () => (await count('inbox')) === ids.length + said.length)
  await until(
    'all is done',
    async () => (await count('inbox WHERE ended_at IS NULL')) + (await count('outbox WHERE ended_at IS NULL')) === 0,
  )
  const { stdout: unclear } = await command('outbox', 'list', '--state', 'ambiguous', '--json')
  const answersTo = (text: string, sent: readonly { readonly text: string }[]): number =>
    sent.filter((reply) => reply.text.includes(`You said: ${text}`)).length
  expect(ids.filter((id) => answersTo(id, platform.sent) !== 1 && !unclear.includes(id))).toEqual([])
  expect(said.filter((text) => answersTo(text, bot.sent()) !== 1 && !unclear.includes(text))).toEqual([])
  await until('the killed node is back', () => isReady(killed))

  expect(noted.length).toBeGreaterThan(ids.length / 2)
  await until('all subscribers have all events', () => followed.every((got) => noted.every((id) => got.includes(id)))).catch(
    () => undefined,
  )
  for (const got of followed) expect(noted.map((id) => got.filter((other) => other === id).length)).toEqual(noted.map(() => 1))
  over.abort()
  const connections = (await Promise.all(following)).map((times) => times ?? 0)
  // Some of the sockets were on a node that ended.
  expect(Math.max(...connections)).toBeGreaterThan(1)
  console.info(`handed over after ${Math.round(stoppedMs)} ms by SIGTERM, and ${Math.round(killedMs)} ms after SIGKILL`)
  expect(stoppedMs).toBeLessThan(STOPPED_MS_MAX)
  expect(killedMs).toBeLessThan(KILLED_MS_MAX)
  for (const { child } of running.values()) expect(await end(child, 'SIGTERM')).toBe(0)
})
