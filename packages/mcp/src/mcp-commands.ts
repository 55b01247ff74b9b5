/** The commands `sluice mcp list`, `test`, `accept`, `add`, `remove` and `login`. See `docs/mcp.md`. */
import { parseArgs } from 'node:util'
import { requireShownHash, shellWord } from '@sluice/kit'
import { AppError, CATALOGUE, type CommandContext, type CommandHelp, errorText, type Host, oneLine, printableLine } from '@sluice/sdk'
import * as v from 'valibot'
import { type McpConfig, mcpSection, type ServerConfig } from './config.ts'
import { changesOf } from './definition-changes.ts'
import { McpServer } from './mcp-server.ts'
import { toolsOf } from './mcp-tools.ts'
import type { RunningServers } from './running-servers.ts'
import { toolName } from './tool-name.ts'

export type CommandName = keyof typeof CATALOGUE.mcp.commandHelp

const SHOWN_CHARS = 100

export class McpCommands {
  readonly #host: Host
  readonly #config: McpConfig
  readonly #running: RunningServers | undefined

  constructor(host: Host, config: McpConfig, running: RunningServers | undefined) {
    this.#host = host
    this.#config = config
    this.#running = running
  }

  async run(name: CommandName, context: CommandContext): Promise<number> {
    switch (name) {
      case 'mcp list':
        return this.#list(context)
      case 'mcp test':
        return this.#test(context)
      case 'mcp accept':
        return this.#accept(context)
      case 'mcp add':
        return this.#add(context)
      case 'mcp remove':
        return this.#remove(context)
      case 'mcp login':
        return this.#login(context)
    }
  }

  async #list(context: CommandContext): Promise<number> {
    readArguments('mcp list', context, 0)
    const servers = await Promise.all(Object.keys(this.#config.servers).map((name) => this.#server(name)))
    if (context.json) context.print(JSON.stringify(servers.map(summary)))
    else if (servers.length === 0) context.print("No MCP server is configured; 'sluice mcp add' adds one.")
    else for (const server of servers) context.print(summaryLine(server))
    return 0
  }

  async #test(context: CommandContext): Promise<number> {
    const { words } = readArguments('mcp test', context, 1)
    const server = await this.#server(words[0] ?? '')
    await server.list(context.signal)
    report(server, context)
    return 0
  }

  async #accept(context: CommandContext): Promise<number> {
    const { words } = readArguments('mcp accept', context, 3)
    const [name = '', toolName = '', given = ''] = words
    const server = await this.#server(name)
    const tool = server.known.tools.find((one) => one.name === toolName)
    if (!tool) throw new AppError('not_found', `The MCP server '${server.name}' has no tool '${printableLine(toolName)}'`)
    requireShownHash({ given, present: tool.hash, name: `the tool '${tool.name}'`, lookAgain: `'sluice mcp test ${server.name}'` })
    if (!server.known.isAccepted(tool)) await server.accept([tool], context.by)
    context.print(context.json ? JSON.stringify({ accepted: tool.name, hash: tool.hash }) : `Accepted ${printableLine(tool.name)}.`)
    return 0
  }

  async #add(context: CommandContext): Promise<number> {
    const { words, values } = readArguments('mcp add', context, undefined)
    const [name = '', command, ...args] = words
    if (Object.hasOwn(this.#config.servers, name))
      throw new AppError('conflict', `There is an MCP server '${name}' already; remove it first`)
    const lists = {
      env: pairs(values.env),
      secret_env: await askFor(values['secret-env'], context),
      headers: await askFor(values.header, context),
    }
    const given = {
      ...(command === undefined ? {} : { command }),
      ...(args.length > 0 && { args }),
      ...(typeof values.url === 'string' && { url: values.url }),
      ...(values.network === true && { network: true }),
      ...(values.writable === undefined ? {} : { writable: values.writable }),
      ...(values.shared === true && { scope: 'shared' }),
      ...Object.fromEntries(Object.entries(lists).filter(([, members]) => Object.keys(members).length > 0)),
    }
    const config = checked(name, given)
    await context.setInConfig(flattened(`mcp.servers.${name}`, given))
    const server = new McpServer(name, config, this.#host, () => {})
    try {
      await server.known.load()
      await server.list(context.signal)
      report(server, context)
    } catch (error) {
      context.warn(`The server was added, but it cannot be used yet: ${errorText(error)}`)
      context.warn(`Correct [mcp.servers.${name}] in the configuration, and run 'sluice mcp test ${name}'.`)
      return 1
    } finally {
      await server.close()
    }
    return 0
  }

  async #remove(context: CommandContext): Promise<number> {
    const { words } = readArguments('mcp remove', context, 1)
    const server = await this.#server(words[0] ?? '')
    await context.setInConfig({ [`mcp.servers.${server.name}`]: undefined })
    await server.forget()
    context.print(context.json ? JSON.stringify({ removed: server.name }) : `Removed ${server.name}.`)
    return 0
  }

  async #login(context: CommandContext): Promise<number> {
    const { words } = readArguments('mcp login', context, 1)
    const server = await this.#server(words[0] ?? '')
    const { ask, print } = context
    if (!ask) throw new AppError('invalid_request', 'A login needs a terminal')
    const login = await (await server.authorization()).begin()
    print(`Open this address in a browser and log in:\n\n${login.url.href}\n`)
    print('The browser then ends at an address on localhost that shows no page. Copy that address from its address bar.')
    const address = await ask('The address:')
    if (!address?.trim()) throw new AppError('aborted', 'The login was not finished')
    await login.finish(address)
    await server.list(context.signal)
    report(server, context)
    return 0
  }

  /** Returns the server that the daemon uses, or one for this command if it is turned off. Throws `not_found`. */
  async #server(name: string): Promise<McpServer> {
    const running = this.#running?.servers.find((server) => server.name === name)
    if (running) return running
    const config = Object.hasOwn(this.#config.servers, name) ? this.#config.servers[name] : undefined
    if (!config) throw new AppError('not_found', `There is no MCP server '${printableLine(name)}' in the configuration`)
    const server = new McpServer(name, config, this.#host, () => {})
    await server.known.load()
    return server
  }
}

interface Arguments {
  readonly words: readonly string[]
  readonly values: Readonly<Record<string, string | boolean | readonly string[] | undefined>>
}

/** The options that may be given more than once. */
const REPEATED = ['env', 'secret-env', 'header', 'writable']

/** `count` is the number of words; undefined: at least one. Throws `invalid_request` with the usage. */
function readArguments(name: CommandName, { args }: CommandContext, count: number | undefined): Arguments {
  const { options = {}, usage = '' }: CommandHelp = CATALOGUE.mcp.commandHelp[name]
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: Object.fromEntries(
        Object.entries(options).map(([option, { value }]) => [
          option,
          { type: value === undefined ? ('boolean' as const) : ('string' as const), multiple: REPEATED.includes(option) },
        ]),
      ),
    })
    if (count === undefined ? positionals.length === 0 : positionals.length !== count) throw new Error('Wrong number of arguments')
    return { words: positionals, values: values as Arguments['values'] }
  } catch (cause) {
    const [why = ''] = errorText(cause).split(/\.? To specify|\n/)
    throw new AppError('invalid_request', `${why.replace(/\.$/, '')}; usage: sluice ${name} ${usage}`.trimEnd(), { cause })
  }
}

function pairs(given: Arguments['values'][string]): Record<string, string> {
  return Object.fromEntries(
    (Array.isArray(given) ? given : []).map((pair: string) => {
      const at = pair.indexOf('=')
      if (at < 1) throw new AppError('invalid_request', `--env takes name=value; got ${JSON.stringify(pair)}`)
      return [pair.slice(0, at), pair.slice(at + 1)]
    }),
  )
}

/** Asks for a secret value for each name: an argument would be visible to other users of the machine. */
async function askFor(names: Arguments['values'][string], { ask }: CommandContext): Promise<Record<string, string>> {
  const values: Record<string, string> = {}
  for (const name of Array.isArray(names) ? names : []) {
    if (!ask) throw new AppError('invalid_request', `Without a terminal, add the server first, and set ${name} with 'sluice config set'`)
    const value = (await ask(`The value of ${printableLine(name)}:`))?.trim()
    if (!value) throw new AppError('aborted', 'No server was added')
    values[name] = value
  }
  return values
}

/** Returns the section of the new server as the daemon would read it. Throws `invalid_request` for values that do not fit. */
function checked(name: string, given: object): ServerConfig {
  const read = v.safeParse(mcpSection.schema, { servers: { [name]: given } })
  const config = read.success ? read.output.servers[name] : undefined
  if (config) return config
  const [issue] = read.success ? [] : read.issues
  throw new AppError(
    'invalid_request',
    `The server cannot be added: ${issue && v.getDotPath(issue)}: ${issue?.message}; usage: sluice mcp add ${CATALOGUE.mcp.commandHelp['mcp add'].usage}`,
  )
}

/** The keys of a table by their dotted paths. */
const flattened = (path: string, table: object): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(table).flatMap(([name, value]): [string, unknown][] =>
      typeof value === 'object' && !Array.isArray(value)
        ? Object.entries(flattened(`${path}.${name}`, value))
        : [[`${path}.${name}`, value]],
    ),
  )

const summary = ({ name, config, known, failure }: McpServer) => ({
  name,
  enabled: config.enabled,
  at: config.url ?? [config.command, ...config.args].join(' '),
  tools: known.tools.length,
  changed: known.tools.filter((tool) => !known.isAccepted(tool)).map((tool) => tool.name),
  problem: failure ?? null,
})

function summaryLine(server: McpServer): string {
  const { name, enabled, at, tools, changed, problem } = summary(server)
  const state = enabled ? (problem ?? (server.known.isKnown ? toolCount(tools) : 'not connected yet')) : 'turned off'
  const asks = changed.length > 0 ? `; changed: ${printableLine(changed.join(', '))}` : ''
  return `${name}: ${printableLine(at)} (${oneLine(state, 2 * SHOWN_CHARS)}${asks})`
}

const toolCount = (count: number): string => `${count} ${count === 1 ? 'tool' : 'tools'}`

/** Shows what a server offers. */
function report(server: McpServer, { json, print, warn }: CommandContext): void {
  const { known, problems, config } = server
  const isAllowed = (name: string) => config.tools?.includes(name) ?? true
  const offered = new Map(toolsOf(server).map((tool) => [tool.name, tool]))
  const tools = known.tools.map((tool) => ({
    ...tool,
    isAccepted: known.isAccepted(tool),
    changes: changesOf(known.acceptedOf(tool), tool),
    offeredAs: isAllowed(tool.name) ? toolName(server.name, tool.name) : null,
  }))
  if (json) {
    const shown = tools.map(({ name, description, isAccepted, changes, hash, offeredAs }) => ({
      name,
      description,
      offered_as: offeredAs,
      risk: offeredAs === null ? null : (offered.get(offeredAs)?.risk ?? null),
      accepted: isAccepted,
      changes,
      hash,
    }))
    print(JSON.stringify({ server: server.name, tools: shown, ...known.offers, problems }))
    return
  }
  const also = Object.entries(known.offers).flatMap(([name, has]) => (has ? [name] : []))
  print(`${server.name} answers. It has ${toolCount(tools.length)}${also.length > 0 ? `, ${also.join(' and ')}` : ''}.`)
  for (const { name, description, isAccepted, changes, hash, offeredAs } of tools) {
    const tool = offeredAs === null ? undefined : offered.get(offeredAs)
    const risk = tool?.risk ?? 'NEW: the agent does not have it'
    const state = offeredAs === null ? 'not in `tools`' : `${risk}${tool && !isAccepted ? ', CHANGED: each call asks' : ''}`
    print(`  ${oneLine(name, SHOWN_CHARS)} (${state}): ${oneLine(description, SHOWN_CHARS)}`)
    if (isAccepted) continue
    for (const line of changes) print(`    ${line}`)
    print(`    To use it as it is shown: sluice mcp accept ${server.name} ${shellWord(printableLine(name))} ${hash}`)
  }
  for (const problem of problems) warn(problem)
}
