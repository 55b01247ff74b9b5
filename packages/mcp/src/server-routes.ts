/** `/api/mcp/servers`: the configured servers with what each offers, and the acceptance of changed tools. */
import { AppError, defineRoute, type Route } from '@sluice/sdk'
import * as v from 'valibot'
import type { McpConfig } from './config.ts'
import { changesOf } from './definition-changes.ts'
import type { McpServer } from './mcp-server.ts'
import type { RunningServers } from './running-servers.ts'
import { riskOf } from './tool-risk.ts'

const toolSchema = v.object({
  name: v.pipe(v.string(), v.description('The name on the server')),
  description: v.string(),
  used: v.pipe(v.boolean(), v.description('False: `tools` of the server leaves it out')),
  risk: v.picklist(['read', 'write', 'execute']),
  accepted: v.pipe(
    v.boolean(),
    v.description('False: a call asks a person if the tool has changed, and the agent has no such tool if it is new'),
  ),
  changes: v.pipe(
    v.array(v.string()),
    v.description('What differs from the accepted definition: `- path: value` as it was, `+ path: value` as it is'),
  ),
  hash: v.pipe(v.string(), v.description('The SHA-256 of the definition, for its acceptance')),
})

const serverSchema = v.object({
  name: v.string(),
  enabled: v.boolean(),
  transport: v.picklist(['stdio', 'http']),
  source: v.pipe(v.string(), v.description('The program, or the address without its query')),
  state: v.picklist(['ok', 'connecting', 'down', 'off']),
  failure: v.pipe(v.nullable(v.string()), v.description('Why the last attempt to connect failed')),
  scope: v.picklist(['client', 'shared']),
  resources: v.boolean(),
  prompts: v.boolean(),
  problems: v.pipe(v.array(v.string()), v.description('Why tools of its last list are left out')),
  tools: v.array(toolSchema),
})
type ShownServer = v.InferOutput<typeof serverSchema>

const NAME_MAX = 128

/** `running` returns undefined while no server is used. */
export const serverRoutes = (config: McpConfig, running: () => RunningServers | undefined): Route[] => {
  const found = (name: string): McpServer => {
    const server = running()?.servers.find((one) => one.name === name)
    if (!server) throw new AppError('not_found', `There is no MCP server '${name}' that is used`)
    return server
  }
  return [
    defineRoute({
      method: 'GET',
      path: '/api/mcp/servers',
      summary: 'The configured MCP servers: their state, and the tools that each offers. Asks no server',
      auth: 'operator',
      answers: { 200: { description: 'All servers', schema: v.object({ servers: v.array(serverSchema) }) } },
      handle: () => ({
        servers: Object.entries(config.servers).map(([name, server]) =>
          shownServer(
            name,
            server,
            running()?.servers.find((one) => one.name === name),
          ),
        ),
      }),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/mcp/servers/:name/test',
      summary: 'Connect to an MCP server and list its tools anew',
      auth: 'operator',
      answers: { 200: { description: 'The server, with its present tools or why it does not answer', schema: serverSchema } },
      async handle({ params: { name = '' }, signal }) {
        const server = found(name)
        // The failure is part of the answer.
        await server.list(signal).catch(() => undefined)
        return shownServer(name, server.config, server)
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/mcp/servers/:name/accept',
      summary: 'Accept the definitions of tools that are new or changed: exactly those that an operator has read',
      auth: 'operator',
      body: v.object({
        tools: v.pipe(v.array(v.object({ name: v.string(), hash: v.string() })), v.minLength(1), v.maxLength(NAME_MAX)),
      }),
      answers: {
        200: { description: 'The server', schema: serverSchema },
        409: { description: 'A tool has another definition now' },
      },
      async handle({ by, params: { name = '' }, body: { tools } }) {
        const server = found(name)
        await server.accept(tools, by)
        return shownServer(name, server.config, server)
      },
    }),
  ]
}

function shownServer(name: string, config: McpConfig['servers'][string], server: McpServer | undefined): ShownServer {
  const { enabled, command, url, scope, tools: wanted } = config
  const known = server?.known
  const state = server === undefined ? 'off' : server.failure !== undefined ? 'down' : known?.isKnown ? 'ok' : 'connecting'
  return {
    name,
    enabled,
    transport: url === undefined ? 'stdio' : 'http',
    source: url === undefined ? (command ?? '') : withoutQuery(url),
    state,
    failure: server?.failure ?? null,
    scope,
    resources: known?.offers.resources ?? false,
    prompts: known?.offers.prompts ?? false,
    problems: [...(server?.problems ?? [])],
    tools: (known?.tools ?? []).map((tool) => ({
      name: tool.name,
      description: tool.description,
      used: wanted === undefined || wanted.includes(tool.name),
      risk: riskOf(config, tool),
      accepted: known?.isAccepted(tool) ?? false,
      changes: [...changesOf(known?.acceptedOf(tool), tool)],
      hash: tool.hash,
    })),
  }
}

/** Keys are often in the query of an address. */
function withoutQuery(address: string): string {
  const url = new URL(address)
  return `${url.origin}${url.pathname}`
}
