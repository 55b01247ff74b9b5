/** Runs a real MQTT broker on loopback for tests: Eclipse Mosquitto from Debian's package. */
import { type ChildProcess, spawn } from 'node:child_process'
import { pbkdf2Sync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { type DebianProgram, debianProgram, type MissingProgram } from './debian-program.ts'

/** How the broker is configured. */
export interface MosquittoOptions {
  /** Passwords by user name; absent: clients connect without a password. */
  readonly users?: Readonly<Record<string, string>>
  /** PEM files; with them the broker accepts only TLS. */
  readonly tls?: { readonly certFile: string; readonly keyFile: string }
  /** Additional lines of the configuration file. */
  readonly lines?: readonly string[]
}

/** A running broker. */
export interface Mosquitto {
  /** The same port after every start. */
  readonly port: number
  readonly url: string
  /** Starts the broker again with its stored messages. */
  start(): Promise<void>
  /** Stops the broker in order, so that it stores everything. May be called twice. */
  stop(): Promise<void>
  /** Kills the broker at once. */
  kill(): Promise<void>
  /** The log of all starts. */
  log(): string
  /** Stops the broker and removes its files. */
  dispose(): Promise<void>
}

const START_MS_MAX = 30_000
const LOG_CHARS_MAX = 200_000

/** Finds or downloads the broker. */
export const findMosquitto = (): Promise<DebianProgram | MissingProgram> =>
  debianProgram({ packages: ['mosquitto'], program: 'usr/sbin/mosquitto' })

/** Starts a broker on a free port with its own folder. */
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
    const killAtExit = (): void => void child.kill('SIGKILL')
    process.once('exit', killAtExit)
    const running = Promise.withResolvers<void>()
    const fail = (what: string) => () => running.reject(new Error(`mosquitto ${what}:\n${log}`))
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-LOG_CHARS_MAX)
      if (/mosquitto version \S+ running/.test(log)) running.resolve()
    })
    child.once('error', running.reject)
    child.once('exit', () => process.removeListener('exit', killAtExit))
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
  // A broker started by root would switch to a user that does not exist here.
  `user ${userInfo().username}`,
  'log_dest stderr',
  'persistence true',
  `persistence_location ${folder}/`,
  // Save at once, so that a kill loses no more than a stop.
  'autosave_on_changes true',
  'autosave_interval 1',
  ...(users ? [`password_file ${join(folder, 'passwords')}`] : ['allow_anonymous true']),
  ...(tls ? [`certfile ${tls.certFile}`, `keyfile ${tls.keyFile}`] : []),
  ...lines,
  '',
]

const ITERATIONS = 101

/** Hashes passwords in the format of `mosquitto_passwd`. */
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
