/** Makes tools of the agent from the tools of a server. */
import { AppError, defineTool, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import type { Definition } from './definition.ts'
import { changesOf } from './definition-changes.ts'
import type { McpServer } from './mcp-server.ts'
import { resultText } from './result-text.ts'
import { savePictures } from './save-pictures.ts'
import { toolName } from './tool-name.ts'
import { riskOf } from './tool-risk.ts'

/** The server checks the arguments itself. */
const anyObject = v.record(v.string(), v.unknown())

/** Returns the tools that the configuration allows and an operator has accepted, the changed ones as they were accepted. */
export function toolsOf(server: McpServer): readonly Tool[] {
  const { config, known } = server
  return known.tools
    .filter(({ name }) => config.tools?.includes(name) ?? true)
    .flatMap((present) => {
      const accepted = known.acceptedOf(present)
      return accepted ? [toolOf(server, present, accepted)] : []
    })
}

/** The model reads the accepted definition. A call is for the present one, and asks a person while that is not accepted. */
function toolOf(server: McpServer, present: Definition, accepted: Definition): Tool {
  return defineTool({
    name: toolName(server.name, accepted.name),
    description: accepted.description || `The tool ${accepted.name} of the MCP server ${server.name}.`,
    input: anyObject,
    inputSchema: accepted.inputSchema,
    risk: riskOf(server.config, accepted),
    decider: 'asker',
    egress: true,
    untrusted: () => `MCP server ${server.name}`,
    alwaysAsks: () => !server.known.isAccepted(present),
    notice: () =>
      server.known.isAccepted(present)
        ? undefined
        : [`The MCP server '${server.name}' has changed this tool, and no operator has accepted it:`, ...changesOf(accepted, present)].join(
            '\n',
          ),
    async run(input, context) {
      const result = await server.call(present, input, context)
      const text = resultText(result, await savePictures(result.content, toolName(server.name, accepted.name), context))
      if (result.isError) throw new AppError('upstream', text || `The tool '${accepted.name}' failed without a reason`)
      if (result.structuredContent !== undefined) context.report?.({ data: JSON.stringify(result.structuredContent) })
      return text
    },
  })
}
