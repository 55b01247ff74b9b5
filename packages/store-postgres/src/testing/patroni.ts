/** Two servers of PostgreSQL under Patroni, with etcd, from Debian's packages: as deploy/cluster/patroni.yml configures them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cacheFolder, releaseName, unpackPackages } from '@sluice/qa/debian-packages'
import { debianProgram } from '@sluice/qa/debian-program'
import { onceAndWhole } from '@sluice/qa/once-and-whole'
import { freePort } from './free-port.ts'

const CONFIG = new URL('../../../../deploy/cluster/patroni.yml', import.meta.url).pathname
const NOBODY = { uid: 65_534, gid: 65_534 }
const identity = process.getuid?.() === 0 ? NOBODY : {}
const PASSWORD = 'walked'

/** A server with its Patroni. */
export interface Member {
  readonly name: string
  /** The port of PostgreSQL. */
  readonly port: number
  /** The URL of the database of Sluice on this server, as the superuser. */
  readonly url: string
  /** Starts Patroni, which starts PostgreSQL. */
  start(): void
  /** Ends Patroni and PostgreSQL at once, as the loss of the machine does. */
  kill(): Promise<void>
  /** Sends a request to Patroni. Resolves to the status and the text. */
  ask(path: string, body?: unknown): Promise<{ readonly status: number; readonly text: string }>
}

export interface PatroniServers {
  readonly members: readonly [Member, Member]
  stop(): Promise<void>
}

/** Resolves to a reason where the programs are not available. `programs` is the folder with PostgreSQL's `bin`. */
export async function startPatroni(programs: string): Promise<PatroniServers | { readonly missing: string }> {
  const etcd = await debianProgram({ packages: ['etcd-server'], program: 'usr/bin/etcd' })
  if ('missing' in etcd) return etcd
  const patroni = await unpackedPatroni()
  if ('missing' in patroni) return patroni
  const folder = mkdtempSync(join(tmpdir(), 'sluice-patroni-'))
  if (process.getuid?.() === 0) chownSync(folder, NOBODY.uid, NOBODY.gid)
  // The folder for sockets that Debian compiles in belongs to the user postgres.
  const settings = `\npostgresql:\n  parameters:\n    unix_socket_directories: ${folder}\n`
  writeFileSync(join(folder, 'patroni.yml'), readFileSync(CONFIG, 'utf8').replace('\npostgresql:\n', settings))
  // The servers run as a user without privileges, who cannot read the cache of another one.
  const root = join(folder, 'packages')
  cpSync(patroni.root, root, { recursive: true })
  const [client, peer] = [await freePort(), await freePort()]
  const clientUrl = `http://127.0.0.1:${client}`
  const peerUrl = `http://127.0.0.1:${peer}`
  const urls = {
    'listen-client-urls': clientUrl,
    'advertise-client-urls': clientUrl,
    'listen-peer-urls': peerUrl,
    'initial-advertise-peer-urls': peerUrl,
    'initial-cluster': `default=${peerUrl}`,
  }
  const args = ['--data-dir', join(folder, 'etcd'), ...Object.entries(urls).flatMap(([name, value]) => [`--${name}`, value])]
  const store = spawn(etcd.path, args, { cwd: folder, env: { ...process.env, ...etcd.env }, stdio: 'ignore' })
  const member = async (name: string): Promise<Member> => {
    const [port, api] = [await freePort(), await freePort()]
    return createMember({ name, folder, port, api, env: environmentOf({ name, folder, port, api, etcd: client, programs, root }) })
  }
  const members = [await member('db-1'), await member('db-2')] as const
  return {
    members,
    async stop() {
      for (const one of members) await one.kill()
      await end(store)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

interface Place {
  readonly name: string
  readonly folder: string
  readonly port: number
  readonly api: number
}

interface Environment extends Place {
  readonly etcd: number
  readonly programs: string
  readonly root: string
}

const environmentOf = ({ name, folder, port, api, etcd, programs, root }: Environment): NodeJS.ProcessEnv => ({
  PATH: process.env.PATH,
  HOME: folder,
  LC_ALL: 'C',
  PYTHONPATH: join(root, 'usr/lib/python3/dist-packages'),
  LD_LIBRARY_PATH: join(root, `usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`),
  PATRONI_NAME: name,
  PATRONI_ETCD3_HOSTS: `127.0.0.1:${etcd}`,
  PATRONI_RESTAPI_LISTEN: `127.0.0.1:${api}`,
  PATRONI_RESTAPI_CONNECT_ADDRESS: `127.0.0.1:${api}`,
  PATRONI_POSTGRESQL_LISTEN: `127.0.0.1:${port}`,
  PATRONI_POSTGRESQL_CONNECT_ADDRESS: `127.0.0.1:${port}`,
  PATRONI_POSTGRESQL_DATA_DIR: join(folder, name),
  PATRONI_POSTGRESQL_BIN_DIR: join(programs, 'bin'),
  PATRONI_POSTGRESQL_PGPASS: join(folder, `${name}.pgpass`),
  PATRONI_SUPERUSER_PASSWORD: PASSWORD,
  PATRONI_REPLICATION_PASSWORD: PASSWORD,
  PATRONI_REWIND_PASSWORD: PASSWORD,
})

function createMember({ name, folder, port, api, env }: Place & { readonly env: NodeJS.ProcessEnv }): Member {
  const data = join(folder, name)
  mkdirSync(data, { mode: 0o700 })
  if (process.getuid?.() === 0) chownSync(data, NOBODY.uid, NOBODY.gid)
  let patroni: ChildProcess | undefined
  return {
    name,
    port,
    url: `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`,
    start() {
      patroni = spawn('/usr/bin/python3', ['-m', 'patroni', join(folder, 'patroni.yml')], {
        ...identity,
        cwd: folder,
        env,
        stdio: 'ignore',
      })
    },
    async kill() {
      await end(patroni)
      killServer(data)
    },
    async ask(path, body) {
      const request = { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
      const answer = await fetch(`http://127.0.0.1:${api}${path}`, body === undefined ? {} : request)
      return { status: answer.status, text: await answer.text() }
    },
  }
}

async function end(child: ChildProcess | undefined): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}

/** Ends the server of this folder, whose backends end with it. */
function killServer(data: string): void {
  try {
    process.kill(Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0]), 'SIGKILL')
  } catch {
    // No server runs there.
  }
}

async function unpackedPatroni(): Promise<{ readonly root: string } | { readonly missing: string }> {
  const packages = ['patroni', 'python3-etcd']
  const root = cacheFolder('dev/debian', `${packages.join('+')}-${await releaseName()}`)
  try {
    await onceAndWhole(root, (draft) => unpackPackages(draft, packages))
    return { root }
  } catch (error) {
    return { missing: `Debian's package of Patroni is not available: ${error instanceof Error ? error.message : String(error)}` }
  }
}
