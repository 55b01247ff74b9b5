/** Makes tools of the agent from the tools of a server. */
import { AppError, defineTool, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import type { Definition } from './definition.ts'
import type { McpServer } from './mcp-server.ts'
import { resultText } from './result-text.ts'
import { toolName } from './tool-name.ts'
import { riskOf } from './tool-risk.ts'

const CHANGED = 'The server has changed this tool. A person must approve its next call.'

/** The server checks the arguments itself. */
const anyObject = v.record(v.string(), v.unknown())

/** Returns the tools that the configuration allows. */
export function toolsOf(server: McpServer): readonly Tool[] {
  const { tools: allowed } = server.config
  return server.known.tools.filter(({ name }) => allowed?.includes(name) ?? true).map((definition) => toolOf(server, definition))
}

function toolOf(server: McpServer, definition: Definition): Tool {
  const isAccepted = () => server.known.isAccepted(definition)
  // The model reads no text of a definition that no person has accepted.
  const shown = isAccepted() ? definition : { description: CHANGED, inputSchema: withoutTexts(definition.inputSchema) }
  return defineTool({
    name: toolName(server.name, definition.name),
    description: shown.description || `The tool ${definition.name} of the MCP server ${server.name}.`,
    input: anyObject,
    inputSchema: shown.inputSchema,
    risk: riskOf(server.config, definition),
    egress: true,
    untrusted: () => `MCP server ${server.name}`,
    alwaysAsks: () => !isAccepted(),
    async run(input, context) {
      const result = await server.call(definition, input, context)
      const text = resultText(result)
      if (result.isError) throw new AppError('upstream', text || `The tool '${definition.name}' failed without a reason`)
      if (result.structuredContent !== undefined) context.report?.({ data: JSON.stringify(result.structuredContent) })
      return text
    },
  })
}

const withoutTexts = (schema: Definition['inputSchema']): Definition['inputSchema'] =>
  JSON.parse(
    JSON.stringify(schema, (key, value) => (['description', 'default'].includes(key) && typeof value === 'string' ? undefined : value)),
  )
