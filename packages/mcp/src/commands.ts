/** Declares the `sluice mcp` commands. Their code is loaded when one of them runs. */
import { CATALOGUE, type Command, type Host } from '@sluice/sdk'
import type { McpConfig } from './config.ts'
import type { RunningServers } from './running-servers.ts'

const HELP = CATALOGUE.mcp.commandHelp

/** The commands also work while no server is configured. */
export const mcpCommands = (host: Host, config: McpConfig, running: () => RunningServers | undefined): Command[] =>
  CATALOGUE.mcp.commands.map((name) => ({
    name,
    ...HELP[name],
    async run(context) {
      const { McpCommands } = await import('./mcp-commands.ts')
      return new McpCommands(host, config, running()).run(name, context)
    },
  }))
