/** One daemon of a cluster: a process with a data directory of its own, and links of its own to the database and to the world. */
import { appendFileSync, copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Link } from '@sluice/testkit/link'
import { type StartingDaemon, spawnProgram } from '../daemons/bundle.ts'

export interface ClusterNodeOptions {
  readonly name: string
  /** A folder that exists, for the data directory and the log of the node. */
  readonly dir: string
  /** The file that starts the daemon. */
  readonly program: string
  /** The server, or several, without links: `postgres://user@127.0.0.1:PORT/name`. */
  readonly databaseUrl: string
  /** The configuration but for `[store]` and `[cluster]`. Each `127.0.0.1:PORT` in it is reached over the link to the world. */
  readonly toml: string
  /** The `[cluster]` section, as TOML; none for a daemon of its own. */
  readonly clusterToml: string
  /** True: `toml` stays the same for all nodes, and the process itself connects over the link to the world. */
  readonly sharesConfig?: boolean
  /** A key file that all nodes share. */
  readonly secretKey?: string
  /** The environment of the first process, in addition to that of every test daemon. */
  readonly env?: Readonly<Record<string, string>>
}

/** Makes a process connect over its link to the world. */
const WORLD_PORTS = join(import.meta.dirname, 'world-ports.mjs')
const ADDRESS = /127\.0\.0\.1:(\d+)/g
/** A daemon drains for at most ten seconds. */
const STOP_MS_MAX = 20_000
/** Three daemons that start from their sources at the same time on a busy machine have taken 50 s. */
const START_MS_MAX = 150_000

/** The ports in the text, each with the one by which the link reaches it. */
async function portsBehind(link: Link, text: string): Promise<Map<string, number>> {
  const ports = new Map<string, number>()
  for (const [, port = ''] of text.matchAll(ADDRESS)) ports.set(port, await link.portTo(Number(port)))
  return ports
}

/** Returns the text with each address behind the link. */
async function behind(link: Link, text: string): Promise<string> {
  const ports = await portsBehind(link, text)
  return text.replaceAll(ADDRESS, (_, port: string) => `127.0.0.1:${ports.get(port)}`)
}

export class ClusterNode {
  readonly name: string
  readonly dataDir: string
  readonly database = new Link()
  readonly world = new Link()
  readonly #options: ClusterNodeOptions
  readonly #logFile: string
  /** The file that starts the next process of the node. */
  program: string
  /** The environment of its next process. */
  env: Readonly<Record<string, string>>
  #daemon: StartingDaemon | undefined
  #url: string | undefined
  #isStopped = false
  #log = (): string => ''

  constructor(options: ClusterNodeOptions) {
    this.#options = options
    this.name = options.name
    this.program = options.program
    this.env = options.env ?? {}
    this.dataDir = join(options.dir, options.name)
    this.#logFile = join(options.dir, `${options.name}.log`)
    mkdirSync(this.dataDir, { mode: 0o700, recursive: true })
  }

  /** Its address; undefined unless a process of the node listens. A stopped process listens too. */
  get url(): string | undefined {
    return this.#url
  }

  get pid(): number | undefined {
    return this.#daemon?.pid
  }

  /** True while SIGSTOP holds its process. */
  get isStopped(): boolean {
    return this.#isStopped
  }

  /** Begins a process. Resolves to its address once it listens, and to undefined if it ends before. */
  async start(): Promise<string | undefined> {
    if (this.#daemon) throw new Error(`${this.name} runs already`)
    const env = { ...this.env, ...(await this.#configure()) }
    const daemon = spawnProgram(this.program, this.dataDir, { env })
    this.#daemon = daemon
    this.#log = daemon.stderr
    process.on('exit', this.#kill)
    void daemon.exited.then(() => {
      process.off('exit', this.#kill)
      appendFileSync(this.#logFile, daemon.stderr())
      if (this.#daemon === daemon) {
        this.#daemon = undefined
        this.#url = undefined
      }
    })
    const timer = setTimeout(() => daemon.kill('SIGKILL'), START_MS_MAX)
    const url = await daemon.url
    clearTimeout(timer)
    if (this.#daemon === daemon) this.#url = url
    return url
  }

  /** Ends the process, if there is one. Resolves to its exit code, or to null after a signal. */
  async end(by: 'SIGKILL' | 'SIGTERM'): Promise<number | null> {
    const daemon = this.#daemon
    if (!daemon) return null
    this.resume()
    if (by === 'SIGKILL') this.#url = undefined
    daemon.kill(by)
    const timer = setTimeout(() => daemon.kill('SIGKILL'), STOP_MS_MAX)
    const code = await daemon.exited
    clearTimeout(timer)
    return code
  }

  /** Stops the process where it stands, like a suspended machine. */
  suspend(): void {
    this.#isStopped = true
    this.#daemon?.kill('SIGSTOP')
  }

  resume(): void {
    if (!this.#isStopped) return
    this.#isStopped = false
    this.#daemon?.kill('SIGCONT')
  }

  /** What its last process has logged. */
  get log(): string {
    return this.#log()
  }

  async close(): Promise<void> {
    await this.end('SIGKILL')
    await Promise.all([this.database.close(), this.world.close()])
  }

  readonly #kill = (): void => void this.#daemon?.kill('SIGKILL')

  /** Writes the files of the node. Resolves to variables that its process needs. */
  async #configure(): Promise<Record<string, string>> {
    const { databaseUrl, toml, clusterToml, secretKey, sharesConfig = false } = this.#options
    const world = sharesConfig ? toml : await behind(this.world, toml)
    const store = `[store]\nbackend = "postgres"\nurl = "${await behind(this.database, databaseUrl)}"\nconnect_timeout_secs = 4`
    writeFileSync(join(this.dataDir, 'config.toml'), `${[world, store, clusterToml].join('\n\n')}\n`, { mode: 0o600 })
    const own = join(this.dataDir, 'secret.key')
    if (secretKey !== undefined && !existsSync(own)) copyFileSync(secretKey, own)
    if (!sharesConfig) return {}
    const ports = JSON.stringify(Object.fromEntries(await portsBehind(this.world, toml)))
    return { WORLD_PORTS: ports, NODE_OPTIONS: `--import=${WORLD_PORTS} ${this.env.NODE_OPTIONS ?? ''}`.trim() }
  }
}
