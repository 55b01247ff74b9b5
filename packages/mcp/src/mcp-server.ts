/** One configured MCP server: its known tools and its connections. */
import { isAbsolute, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { patientFetch } from '@sluice/kit'
import { AppError, errorText, type Host, type ToolContext } from '@sluice/sdk'
import type { Authorization } from './authorization.ts'
import type { ServerConfig } from './config.ts'
import type { Connection, ListedServer } from './connection.ts'
import { Connections, type OpenConnection } from './connections.ts'
import type { Definition } from './definition.ts'
import { KnownTools } from './known-tools.ts'

const SECOND_MS = 1000
const PATH_DEFAULT = '/usr/local/bin:/usr/bin:/bin'
/** The key of the connection that only lists tools. */
const LISTING = 'listing'

export class McpServer {
  readonly name: string
  readonly config: ServerConfig
  readonly known: KnownTools
  /** Why tools of the last list are left out. */
  problems: readonly string[] = []
  /** Why the last attempt to connect failed; undefined after one that succeeded. */
  failure: string | undefined
  readonly #host: Host
  readonly #connections: Connections
  readonly #onChange: () => void
  #authorization: Authorization | undefined

  /** `onChange` is called when the list of tools has changed. */
  constructor(name: string, config: ServerConfig, host: Host, onChange: () => void) {
    this.name = name
    this.config = config
    this.known = new KnownTools(host.keyValue, name, config)
    this.#host = host
    this.#onChange = onChange
    this.#connections = new Connections({
      clock: host.clock,
      server: name,
      connectionsMax: config.max_connections,
      idleMs: config.idle_secs * SECOND_MS,
    })
  }

  /** The number of connections; for a program, the number of its processes. */
  get connections(): number {
    return this.#connections.count
  }

  /** Runs `work` on the connection of the caller. */
  use<Result>(context: ToolContext, work: (connection: Connection) => Promise<Result>): Promise<Result> {
    const { agent, workspace, signal } = context
    const key = JSON.stringify(this.config.scope === 'shared' ? [agent] : [agent, clientOf(context)])
    return this.#connections.use({ key, open: this.#opener(workspace.root), signal, work })
  }

  /**
   * Calls a tool. Throws `conflict` when the server no longer has this definition: the turn was offered another one than what would
   * run, so a person has not seen it. Later turns are offered what the server has on this connection.
   */
  async call(definition: Definition, input: Record<string, unknown>, context: ToolContext) {
    const { name, hash } = definition
    return this.use(context, async (connection) => {
      if (connection.hashOf(name) !== hash) await this.#take(await connection.list(context.signal))
      if (connection.hashOf(name) !== hash) {
        throw new AppError(
          'conflict',
          `The MCP server '${this.name}' ${connection.hashOf(name) === undefined ? 'no longer has' : 'has changed'} the tool '${name}'. The next turn gets its present tools.`,
        )
      }
      return connection.call(name, input, context)
    })
  }

  /** Connects and lists the tools, on a connection that no client uses. Rejects with the reason when this fails. */
  async list(signal: AbortSignal): Promise<void> {
    const root = this.#host.workspaces[0] ?? this.#host.dataDir
    const work = async (connection: Connection) => connection.close()
    // Opening a connection lists the tools.
    await this.#connections.use({ key: LISTING, open: this.#opener(root), signal, work })
  }

  /**
   * Records which operator accepts these definitions of the last list, and accepts them. An approval of a call accepts none. Throws
   * `conflict`, records nothing and accepts none when one of them is another by now.
   */
  async accept(tools: readonly Pick<Definition, 'name' | 'hash'>[], by: string): Promise<void> {
    const other = tools.find(({ name, hash }) => !this.known.tools.some((tool) => tool.name === name && tool.hash === hash))
    if (other) throw new AppError('conflict', `The tool '${other.name}' has another definition now: look at it again`)
    const detail = { server: this.name, tools: tools.map(({ name, hash }) => ({ name, hash })) }
    await this.#host.service('audit')?.({ kind: 'tools_accepted', by, detail })
    await this.known.accept(tools)
    this.#onChange()
  }

  /** The authorization at the server. Throws `invalid_request` for a server on this machine, which needs none. */
  async authorization(): Promise<Authorization> {
    const { url, oauth } = this.config
    if (url === undefined) throw new AppError('invalid_request', `The MCP server '${this.name}' runs on this machine and needs no login`)
    const { Authorization } = await import('./authorization.ts')
    this.#authorization ??= new Authorization({ server: this.name, url, oauth, host: this.#host })
    return this.#authorization
  }

  /** Ends the connections and deletes everything that is kept about the server. */
  async forget(): Promise<void> {
    await this.close()
    await this.known.forget()
    if (this.config.url !== undefined) await (await this.authorization()).forget()
  }

  close(): Promise<void> {
    return this.#connections.close()
  }

  #opener(root: string): OpenConnection {
    return async (onEnd, signal) => {
      let connection: Connection | undefined
      try {
        const { connect } = await import('./connection.ts')
        const { command, start_timeout_secs, timeout_secs } = this.config
        const options = {
          server: this.name,
          transport: await this.#transport(root),
          root: command === undefined ? undefined : pathToFileURL(root).href,
          startTimeoutMs: start_timeout_secs * SECOND_MS,
          timeoutMs: timeout_secs * SECOND_MS,
          clock: this.#host.clock,
          log: this.#host.log,
          onListed: (listed: ListedServer) => this.#take(listed),
          onEnd,
        }
        connection = await connect(options, signal)
        await this.#take(await connection.open(signal))
        this.failure = undefined
        return connection
      } catch (error) {
        this.failure = errorText(error)
        await connection?.close()
        throw error
      }
    }
  }

  async #take({ tools, problems, offers }: ListedServer): Promise<void> {
    this.problems = problems
    if (await this.known.update(tools, offers)) this.#onChange()
  }

  async #transport(root: string) {
    const { command, url, args, network, writable, timeout_secs } = this.config
    if (url !== undefined) {
      const { HttpTransport } = await import('./http-transport.ts')
      const { headers } = this.config
      const isGiven = Object.keys(headers).some((name) => name.toLowerCase() === 'authorization')
      return new HttpTransport({
        url,
        headers,
        authorization: isGiven ? undefined : await this.authorization(),
        fetch: patientFetch(this.#host.fetch, timeout_secs),
        clock: this.#host.clock,
      })
    }
    const { StdioTransport } = await import('./stdio-transport.ts')
    return new StdioTransport(this.#host.spawn, this.#host.clock, {
      file: command ?? '',
      args,
      cwd: root,
      env: this.#environment(root),
      policy: { writable: writable.map((folder) => (isAbsolute(folder) ? folder : resolve(root, folder))), network },
    })
  }

  /** The variables of the daemon are not passed on, except where programs are found and the language. */
  #environment(root: string): Record<string, string> {
    const { PATH, LANG } = process.env
    const secrets = Object.entries(this.config.secret_env).map(([name, secret]) => [name, secret.reveal()])
    return {
      PATH: PATH || PATH_DEFAULT,
      HOME: root,
      TERM: 'dumb',
      LANG: LANG ?? 'C.UTF-8',
      ...this.config.env,
      ...Object.fromEntries(secrets),
    }
  }
}

/** Callers without an identity of their own are named so. */
const UNKNOWN_CALLER = 'local'

/**
 * The device or sender, so that all of its connections are one client; without an identity, each connection is a client, and in a room
 * each writer of a conversation.
 */
const clientOf = ({ caller, client, isInRoom }: ToolContext): string =>
  isInRoom || caller === undefined || caller === UNKNOWN_CALLER ? client : caller
