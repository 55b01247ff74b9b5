/** What operators do with the data of a daemon on PostgreSQL: move it there and back, and recover it to an earlier time. */
import { execFile } from 'node:child_process'
import { chownSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ChatappFake, chatappRequest, startChatappFake } from '@sluice/channel-chatapp/testing'
import { startPostgres, type TestServer } from '@sluice/store-postgres/testing/postgres-server'
import pg from 'pg'
import { afterEach, expect, test } from 'vitest'
import { environment, ROOT, type StartingDaemon, spawnProgram } from '../daemons/bundle.ts'

const FULL = join(ROOT, 'profiles', 'full.ts')
const WAIT_MS = 30_000

const undo: (() => unknown)[] = []
afterEach(async () => {
  for (const end of undo.splice(0).reverse()) await end()
})

interface Site {
  readonly dataDir: string
  readonly platform: ChatappFake
  /** Makes the platform refuse messages for a while. */
  outage(isOn: boolean): void
  configure(backend: 'sqlite' | 'postgres', url?: string): void
  start(): Promise<{ readonly url: string; end(signal?: NodeJS.Signals): Promise<unknown> }>
  command(...args: readonly string[]): Promise<{ readonly code: number; readonly out: string; readonly err: string }>
}

async function site(): Promise<Site> {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-operations-'))
  undo.push(() => rmSync(dataDir, { recursive: true, force: true }))
  const platform = await startChatappFake()
  let isDown = false
  platform.fail(
    { fault: 'status', status: 429, headers: { 'retry-after': '1' } },
    { times: Number.POSITIVE_INFINITY, matches: () => isDown },
  )
  undo.push(() => platform.close())
  const env = { NODE_COMPILE_CACHE: join(ROOT, 'node_modules', '.cache', 'sluice', 'sources') }
  return {
    dataDir,
    platform,
    outage(isOn) {
      isDown = isOn
    },
    configure(backend, url = '') {
      const store = `[store]\nbackend = "${backend}"\n${url === '' ? '' : `url = "${url}"\n`}`
      const channel = `[channels_config.chatapp]
access_token = "chatapp-fake-token"
phone_number_id = "200000000000002"
verify_token = "verify"
app_secret = "chatapp-app-secret-01"
allowed_numbers = ["*"]
api_url = "${platform.url}"
`
      writeFileSync(join(dataDir, 'config.toml'), `[provider]\nkind = "offline"\n\n${store}\n${channel}`, { mode: 0o600 })
    },
    async start() {
      const daemon: StartingDaemon = spawnProgram(FULL, dataDir, { env })
      undo.push(() => daemon.kill('SIGKILL'))
      const url = await daemon.url
      if (url === undefined) throw new Error(`the daemon did not start: ${daemon.stderr()}`)
      return {
        url,
        end(signal = 'SIGTERM') {
          daemon.kill(signal)
          return daemon.exited
        },
      }
    },
    command: (...args) =>
      new Promise((resolve) => {
        execFile(process.execPath, [FULL, ...args, '--data-dir', dataDir], { env: environment(env) }, (error, out, err) =>
          resolve({ code: typeof error?.code === 'number' ? error.code : error ? -1 : 0, out, err }),
        )
      }),
  }
}

async function deliver(url: string, id: string): Promise<void> {
  // The platform lets a reply wait for a day after the message.
  const timestamp = String(Math.floor(Date.now() / 1000))
  const message = { from: '15550002222', id, timestamp, type: 'text', text: { body: `what about ${id}` } }
  const value = {
    messaging_product: 'whatsapp',
    metadata: { display_phone_number: '15550001111', phone_number_id: '200000000000002' },
    contacts: [{ profile: { name: 'Ada' }, wa_id: message.from }],
    messages: [message],
  }
  const payload = { object: 'whatsapp_business_account', entry: [{ id: '100000000000001', changes: [{ field: 'messages', value }] }] }
  const { path, headers, body } = chatappRequest(Buffer.from(JSON.stringify(payload)))
  const response = await fetch(`${url}${path}`, { method: 'POST', headers: Object.fromEntries(headers ?? []), body: body ?? '' })
  expect(response.status).toBe(200)
}

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + WAIT_MS
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`not in time: ${what}`)
    await sleep(50)
  }
}

/** How often a message was answered, by the id in its text. */
const answers = ({ sent }: ChatappFake, id: string): number => sent.filter(({ text }) => text.includes(`You said: what about ${id}`)).length

test('unfinished work moves to PostgreSQL and back, and is done exactly once', { timeout: 180_000 }, async () => {
  const server = await startPostgres({ inMemory: true })
  undo.push(() => server.stop())
  const { dataDir, platform, outage, configure, start, command } = await site()
  configure('sqlite', server.url)
  let daemon = await start()
  await deliver(daemon.url, 'id-1')
  await until('the first answer', () => answers(platform, 'id-1') === 1)
  outage(true)
  await deliver(daemon.url, 'id-2')
  await sleep(500)
  const running = await command('store', 'migrate', '--to', 'postgres')
  expect(running).toMatchObject({ code: 1, out: '' })
  expect(running.err).toContain('Another daemon is running')
  await daemon.end('SIGKILL')

  const there = await command('store', 'migrate', '--to', 'postgres', '--json')
  expect(there).toMatchObject({ code: 0, err: '' })
  const { receipt, next, ...moved } = JSON.parse(there.out)
  expect(next).toContain('backend = "postgres"')
  expect(JSON.parse(readFileSync(receipt, 'utf8'))).toEqual(moved)
  configure('postgres', server.url)
  outage(false)
  daemon = await start()
  await until('the second answer', () => answers(platform, 'id-2') === 1)
  outage(true)
  await deliver(daemon.url, 'id-3')
  await sleep(500)
  await daemon.end()

  renameSync(join(dataDir, 'sluice.db'), join(dataDir, 'before.db'))
  const back = await command('store', 'migrate', '--to', 'sqlite')
  expect(back).toMatchObject({ code: 0, err: '' })
  expect(back.out).toMatch(/copied and compared: \d+ rows/)
  expect(back.out).toContain('next: set [store] backend = "sqlite"')
  configure('sqlite')
  outage(false)
  daemon = await start()
  await until('the third answer', () => answers(platform, 'id-3') === 1)
  // A platform repeats what it does not know to be taken.
  for (const id of ['id-1', 'id-2', 'id-3']) await deliver(daemon.url, id)
  await sleep(500)
  expect(['id-1', 'id-2', 'id-3'].map((id) => answers(platform, id))).toEqual([1, 1, 1])
  await daemon.end()
})

/** Copies the data folder of a running server with the functions for base backups. */
async function baseBackup(server: TestServer, client: pg.Client): Promise<string> {
  const copy = join(server.folder, 'base')
  await client.query("SELECT pg_backup_start('base', true)")
  cpSync(join(server.folder, 'data'), copy, { recursive: true, preserveTimestamps: true })
  const { rows } = await client.query('SELECT labelfile FROM pg_backup_stop(true)')
  writeFileSync(join(copy, 'backup_label'), rows[0].labelfile)
  rmSync(join(copy, 'postmaster.pid'))
  return copy
}

test('after a point-in-time recovery nothing is sent again that was sent later', { timeout: 180_000 }, async () => {
  const archive = mkdtempSync(join(tmpdir(), 'sluice-archive-'))
  if (process.getuid?.() === 0) chownSync(archive, 65_534, 65_534)
  undo.push(() => rmSync(archive, { recursive: true, force: true }))
  const server = await startPostgres({
    settings: ['archive_mode=on', `archive_command=cp %p ${archive}/%f`, 'archive_timeout=0'],
  })
  undo.push(() => server.stop())
  const { platform, outage, configure, start, command } = await site()
  configure('postgres', server.url)
  let daemon = await start()
  const client = new pg.Client(server.url)
  client.on('error', () => undefined)
  await client.connect()
  await deliver(daemon.url, 'id-1')
  await until('the first answer', () => answers(platform, 'id-1') === 1)
  const base = await baseBackup(server, client)
  outage(true)
  await deliver(daemon.url, 'id-2')
  const waiting = 'SELECT count(*)::int AS count FROM sluice.outbox WHERE ended_at IS NULL'
  await until('the second answer waits', async () => (await client.query(waiting)).rows[0].count === 1)
  const { rows } = await client.query('SELECT clock_timestamp()::text AS until')
  await sleep(20)
  // The daemon goes on after that time: it sends the answer that waits, and more.
  outage(false)
  await until('the second answer', () => answers(platform, 'id-2') === 1)
  await deliver(daemon.url, 'id-3')
  await until('the third answer', () => answers(platform, 'id-3') === 1)
  await daemon.end()
  const { rows: switched } = await client.query('SELECT pg_walfile_name(pg_switch_wal()) AS file')
  await until('the log is archived', () => existsSync(join(archive, switched[0].file)))
  await client.end()
  const moved = mkdtempSync(join(tmpdir(), 'sluice-base-'))
  undo.push(() => rmSync(moved, { recursive: true, force: true }))
  if (process.getuid?.() === 0) chownSync(moved, 65_534, 65_534)
  const restored = join(moved, 'data')
  await copyFolder(base, restored)
  writeFileSync(join(restored, 'recovery.signal'), '')
  const recovered = await startPostgres({
    data: restored,
    settings: [`restore_command=cp ${archive}/%f %p`, `recovery_target_time=${rows[0].until}`, 'recovery_target_action=promote'],
  })
  undo.push(() => recovered.stop())

  configure('postgres', recovered.url)
  await untilPromoted(recovered)
  const untilTime = new Date(rows[0].until).toISOString()
  expect((await command('store', 'recovered', '--until', '2026-01-01 12:00')).err).toContain('with its zone')
  const marked = await command('store', 'recovered', '--until', untilTime, '--json')
  expect(marked).toMatchObject({ code: 0, err: '' })
  expect(JSON.parse(marked.out)).toEqual({ until: untilTime, marked: { replies: 1, messages: 0, turns: 0, approvals: 0, runs: 0 } })
  daemon = await start()
  await sleep(1_000)
  expect(['id-1', 'id-2', 'id-3'].map((id) => answers(platform, id))).toEqual([1, 1, 1])
  const listed = JSON.parse((await command('outbox', 'list', '--state', 'ambiguous', '--json')).out)
  expect(JSON.stringify(listed)).toContain('recovered to its state of')
  const refused = await command('store', 'recovered', '--until', untilTime)
  expect(refused.err).toContain('A daemon works with the database')
  await daemon.end()
})

async function copyFolder(from: string, to: string): Promise<void> {
  mkdirSync(to, { mode: 0o700 })
  cpSync(from, to, { recursive: true })
  if (process.getuid?.() === 0) await new Promise((resolve) => execFile('chown', ['-R', '65534:65534', to], resolve))
}

async function untilPromoted(server: TestServer): Promise<void> {
  await until('the server accepts writes', async () => {
    const client = new pg.Client(server.url)
    try {
      await client.connect()
      return (await client.query('SELECT pg_is_in_recovery() AS standby')).rows[0].standby === false
    } catch {
      return false
    } finally {
      await client.end().catch(() => undefined)
    }
  })
}
