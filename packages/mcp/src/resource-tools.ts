/** The tools for what servers offer besides tools: resources (texts with an address) and prompts (templates of messages). */
import { AppError, defineTool, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import type { Offers } from './known-tools.ts'
import type { McpServer } from './mcp-server.ts'
import { blockText, resourceText } from './result-text.ts'

/** Returns one tool for resources and one for prompts, each only if a server offers them. */
export function resourceTools(servers: readonly McpServer[]): readonly Tool[] {
  const offering = (offer: keyof Offers) => servers.filter(({ known }) => known.offers[offer])
  const [resources, prompts] = [offering('resources'), offering('prompts')]
  return [...(resources.length > 0 ? [resourceTool(resources)] : []), ...(prompts.length > 0 ? [promptTool(prompts)] : [])]
}

const resourceTool = (servers: readonly McpServer[]): Tool =>
  defineTool({
    name: 'mcp_resources',
    description: 'Lists the resources of an MCP server, or reads one of them.',
    input: v.object({
      server: serverName(servers),
      uri: v.optional(v.pipe(v.string(), v.minLength(1), v.description('The resource to read; absent: list them all'))),
    }),
    // Reading tells the server an address, which can be a message.
    risk: ({ server, uri }) => (uri === undefined ? 'read' : named(servers, server).config.default_risk),
    decider: 'asker',
    egress: ({ uri }) => uri !== undefined,
    untrusted: ({ server }) => `MCP server ${server}`,
    async run({ server, uri }, context) {
      return named(servers, server).use(context, async (connection) => {
        if (uri !== undefined) return (await connection.readResource(uri, context.signal)).map(resourceText).join('\n')
        const { resources, templates } = await connection.listResources(context.signal)
        const lines = [
          ...resources.map((one) => listed(one.uri, one.name, one.description)),
          ...templates.map((one) => listed(one.uriTemplate, `${one.name}, a template`, one.description)),
        ]
        return lines.join('\n') || 'The server has no resources.'
      })
    },
  })

const promptTool = (servers: readonly McpServer[]): Tool =>
  defineTool({
    name: 'mcp_prompts',
    description: 'Lists the prompts of an MCP server, or fills in one of them.',
    input: v.object({
      server: serverName(servers),
      name: v.optional(v.pipe(v.string(), v.minLength(1), v.description('The prompt to fill in; absent: list them all'))),
      arguments: v.optional(v.pipe(v.record(v.string(), v.string()), v.description('The arguments of the prompt')), {}),
    }),
    risk: ({ server, name }) => (name === undefined ? 'read' : named(servers, server).config.default_risk),
    decider: 'asker',
    egress: ({ name }) => name !== undefined,
    untrusted: ({ server }) => `MCP server ${server}`,
    async run({ server, name, arguments: values }, context) {
      return named(servers, server).use(context, async (connection) => {
        if (name !== undefined) {
          const messages = await connection.getPrompt(name, values, context.signal)
          return messages.map(({ role, content }) => `${role}: ${blockText(content)}`).join('\n')
        }
        const prompts = await connection.listPrompts(context.signal)
        const usage = ({ name: argument, required }: { name: string; required?: boolean | undefined }) =>
          required ? argument : `[${argument}]`
        const lines = prompts.map((one) => listed([one.name, ...(one.arguments ?? []).map(usage)].join(' '), one.title, one.description))
        return lines.join('\n') || 'The server has no prompts.'
      })
    },
  })

const serverName = (servers: readonly McpServer[]) => v.picklist(servers.map(({ name }) => name))

const listed = (...parts: readonly (string | undefined)[]): string => parts.filter((part) => part !== undefined && part !== '').join(': ')

function named(servers: readonly McpServer[], name: string): McpServer {
  const server = servers.find((one) => one.name === name)
  if (!server) throw new AppError('invalid_request', `There is no MCP server '${name}'`)
  return server
}
