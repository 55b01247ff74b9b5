/**
 * The MCP feature as a client for the conformance suite of the protocol:
 *
 *     npx @modelcontextprotocol/conformance client --command 'node qa/src/mcp/conformance-client.ts' --scenario tools_call
 *
 * The suite adds the address of its server as the last argument. Two scenarios fail: `auth/basic-cimd` wants a client that publishes its
 * metadata at an address, and `auth/2025-03-26-oauth-metadata-backcompat` has an issuer that does not match its address.
 */
import mcp from '@sluice/mcp'
import type { ClientId, CommandContext } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'

const url = process.argv.at(-1) ?? ''
const context: Record<string, string> = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}')
const schema = mcp.section?.schema
if (!schema) throw new Error('The feature has no section')
const { client_id, client_secret } = context
const oauth = client_id === undefined ? undefined : { client_id, ...(client_secret !== undefined && { client_secret }) }

const host = testHost({ fetch })
const parts = mcp.build(host, v.parse(schema, { servers: { suite: { url, ...(oauth && { oauth }) } } }))
const signal = new AbortController().signal

/** Follows the address of a login as a browser would, and returns where it ended. */
const browse = async (printed: readonly string[]): Promise<string> => {
  const address = /https?:\S+/.exec(printed[0] ?? '')?.[0] ?? ''
  return (await fetch(address, { redirect: 'manual' })).headers.get('location') ?? ''
}

async function command(name: string): Promise<void> {
  const printed: string[] = []
  const given: CommandContext = {
    args: ['suite'],
    cwd: '/',
    json: false,
    print: (line) => void printed.push(line),
    warn: (line) => process.stderr.write(`${line}\n`),
    signal,
    addToConfig: async () => {},
    setInConfig: async () => {},
    ask: () => browse(printed),
  }
  await parts.commands?.find((one) => one.name === name)?.run(given)
  process.stderr.write(`${printed.join('\n')}\n`)
}

/** Arguments for the tools of the suite. */
const INPUTS: Readonly<Record<string, object>> = { mcp__suite__add_numbers: { a: 5, b: 3 } }

await parts.register?.(signal)
await command('mcp test').catch(() => command('mcp login'))
for (const tool of parts.tools ?? []) {
  if (!tool.name.startsWith('mcp__')) continue
  const call = { ...toolContext(signal, host.by), client: 'suite' as ClientId, ask: async () => 'suite' }
  const run = () => tool.run(INPUTS[tool.name] ?? {}, call)
  const text = await run().catch(async () => {
    await command('mcp login')
    return run()
  })
  process.stderr.write(`${tool.name}: ${text}\n`)
}
await parts.close?.()
