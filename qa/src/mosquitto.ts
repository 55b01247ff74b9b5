/** A real MQTT broker on loopback, for tests: Eclipse Mosquitto, as Debian packages it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { pbkdf2Sync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { type DebianProgram, debianProgram, type MissingProgram } from './debian-program.ts'

export interface MosquittoOptions {
  /** Passwords by user name; absent: everybody may connect. */
  readonly users?: Readonly<Record<string, string>>
  /** PEM files; with them it speaks TLS alone. */
  readonly tls?: { readonly certFile: string; readonly keyFile: string }
  /** Further lines of its configuration file. */
  readonly lines?: readonly string[]
}

export interface Mosquitto {
  /** Of every start alike. */
  readonly port: number
  readonly url: string
  /** Again, with all it has kept. */
  start(): Promise<void>
  /** Lets it end by itself, so that it keeps everything. Idempotent. */
  stop(): Promise<void>
  /** Ends it where it stands. */
  kill(): Promise<void>
  /** What it has logged, of all starts. */
  log(): string
  /** Stops it and removes its files. */
  dispose(): Promise<void>
}

const START_MS_MAX = 5000
const LOG_CHARS_MAX = 200_000

export const findMosquitto = (): Promise<DebianProgram | MissingProgram> =>
  debianProgram({ packages: ['mosquitto'], program: 'usr/sbin/mosquitto' })

export async function startMosquitto(program: DebianProgram, options: MosquittoOptions = {}): Promise<Mosquitto> {
  const folder = await mkdtemp(join(tmpdir(), 'mosquitto-'))
  const port = await freePort()
  const config = join(folder, 'mosquitto.conf')
  await writeFile(config, configLines(folder, port, options).join('\n'))
  if (options.users) await writeFile(join(folder, 'passwords'), passwordLines(options.users).join('\n'), { mode: 0o600 })
  let broker: ChildProcess | undefined
  let earlier = ''
  let log = ''

  const start = async (): Promise<void> => {
    const child = spawn(program.path, ['-c', config], { env: { ...process.env, ...program.env }, stdio: ['ignore', 'ignore', 'pipe'] })
    broker = child
    earlier = (earlier + log).slice(-LOG_CHARS_MAX)
    log = ''
    const leaveNoneBehind = (): void => void child.kill('SIGKILL')
    process.once('exit', leaveNoneBehind)
    const running = Promise.withResolvers<void>()
    const fail = (what: string) => () => running.reject(new Error(`mosquitto ${what}:\n${log}`))
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-LOG_CHARS_MAX)
      if (/mosquitto version \S+ running/.test(log)) running.resolve()
    })
    child.once('error', running.reject)
    child.once('exit', () => process.removeListener('exit', leaveNoneBehind))
    child.once('exit', fail('ended'))
    const timer = setTimeout(fail('did not start'), START_MS_MAX)
    await running.promise.finally(() => clearTimeout(timer))
  }
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const child = broker
    broker = undefined
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
  }

  await start()
  return {
    port,
    url: `${options.tls ? 'mqtts://localhost' : 'mqtt://127.0.0.1'}:${port}`,
    start,
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
    log: () => earlier + log,
    async dispose() {
      await end('SIGKILL')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const configLines = (folder: string, port: number, { users, tls, lines = [] }: MosquittoOptions): string[] => [
  `listener ${port} 127.0.0.1`,
  // Started by root it would look for a user of its own, who is nobody here.
  `user ${userInfo().username}`,
  'log_dest stderr',
  'persistence true',
  `persistence_location ${folder}/`,
  // Kept at once, so that it has as much after a kill as after a stop.
  'autosave_on_changes true',
  'autosave_interval 1',
  ...(users ? [`password_file ${join(folder, 'passwords')}`] : ['allow_anonymous true']),
  ...(tls ? [`certfile ${tls.certFile}`, `keyfile ${tls.keyFile}`] : []),
  ...lines,
  '',
]

const ITERATIONS = 101

/** As `mosquitto_passwd` writes them. */
const passwordLines = (users: Readonly<Record<string, string>>): string[] =>
  Object.entries(users).map(([name, password]) => {
    const salt = randomBytes(12)
    const key = pbkdf2Sync(password, salt, ITERATIONS, 64, 'sha512')
    return `${name}:$7$${ITERATIONS}$${salt.toString('base64')}$${key.toString('base64')}`
  })

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
