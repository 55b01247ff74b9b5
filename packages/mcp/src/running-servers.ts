/** The configured servers while the daemon runs. This module is loaded only when a server is configured. */
import type { Finding, Host, LinkHealth, NodeProgram, Tool } from '@sluice/sdk'
import type { McpConfig } from './config.ts'
import { McpServer } from './mcp-server.ts'
import { toolsOf } from './mcp-tools.ts'
import { resourceTools } from './resource-tools.ts'

/** The waits between attempts to list the tools of a server whose tools are not known yet. */
const RETRY_MS_MIN = 5_000
const RETRY_MS_MAX = 600_000

export class RunningServers {
  readonly servers: readonly McpServer[]
  readonly #host: Host
  readonly #closed = new AbortController()

  constructor(host: Host, config: McpConfig) {
    this.#host = host
    this.servers = Object.entries(config.servers)
      .filter(([, { enabled }]) => enabled)
      .map(([name, server]) => new McpServer(name, server, host, () => host.refresh(`tools of the MCP server '${name}' changed`)))
  }

  get hasTools(): boolean {
    return this.servers.some(({ known }) => known.tools.length > 0)
  }

  get tools(): readonly Tool[] {
    return [...this.servers.flatMap(toolsOf), ...resourceTools(this.servers)]
  }

  /** Reads the known tools. Servers whose tools are not known are asked in the background. */
  async start(): Promise<void> {
    await Promise.all(this.servers.map(({ known }) => known.load()))
    for (const server of this.servers) if (!server.known.isKnown) void this.#listFirst(server)
  }

  async check(signal: AbortSignal): Promise<readonly Finding[]> {
    const findings = await Promise.all(this.servers.map((server) => checkServer(server, signal)))
    return findings.flat()
  }

  links(): readonly LinkHealth[] {
    return this.servers.map(({ name, failure, known }) => ({
      name: `MCP server ${name}`,
      state: failure === undefined ? (known.isKnown ? 'ok' : 'connecting') : 'down',
    }))
  }

  /** The servers that are programs of this machine. */
  programs(): readonly NodeProgram[] {
    return this.servers
      .filter(({ config }) => config.command !== undefined)
      .map(({ name, connections }) => ({ server: name, processes: connections }))
  }

  async close(): Promise<void> {
    this.#closed.abort()
    await Promise.all(this.servers.map((server) => server.close()))
  }

  async #listFirst(server: McpServer): Promise<void> {
    const { clock, log } = this.#host
    const { signal } = this.#closed
    for (let waitMs = RETRY_MS_MIN; !signal.aborted && !server.known.isKnown; waitMs = Math.min(2 * waitMs, RETRY_MS_MAX)) {
      await server.list(signal).catch(() => undefined)
      if (server.failure === undefined || signal.aborted) return
      log.warn('MCP server does not answer', { server: server.name, reason: server.failure })
      await clock.sleep(waitMs, signal)
    }
  }
}

async function checkServer(server: McpServer, signal: AbortSignal): Promise<Finding[]> {
  const { name, known, config } = server
  try {
    await server.list(signal)
  } catch {
    const fix = `run 'sluice mcp test ${name}' after you have corrected [mcp.servers.${name}]`
    return [{ status: 'fail', detail: server.failure ?? `The MCP server '${name}' does not answer`, fix }]
  }
  const unknown = (config.tools ?? []).filter((tool) => !known.tools.some((one) => one.name === tool))
  const changed = known.tools.filter((tool) => !known.isAccepted(tool))
  const warn = (detail: string, fix: string): Finding => ({ status: 'warn', detail: `The MCP server '${name}': ${detail}`, fix })
  return [
    { status: 'ok', detail: `The MCP server '${name}' answers; it has ${known.tools.length} tools` },
    ...server.problems.map((problem) => warn(problem, 'ask the author of the server for a smaller or unique definition')),
    ...unknown.map((tool) => warn(`it has no tool '${tool}'`, `correct tools under [mcp.servers.${name}]`)),
    ...(changed.length > 0
      ? [warn(`new or changed tools: ${changed.map((tool) => tool.name).join(', ')}`, `'sluice mcp test ${name}' shows how to accept them`)]
      : []),
  ]
}
