/**
 * The MCP feature as a client for the conformance suite of the protocol, which `conformance.slow.test.ts` runs. The suite adds the address
 * of its server as the last argument; `MCP_CONFORMANCE_CONTEXT` has credentials and calls.
 */
import { systemClock } from '@sluice/kit'
import mcp from '@sluice/mcp'
import type { ClientId, CommandContext } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'

interface SuiteContext {
  readonly client_id?: string
  readonly client_secret?: string
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: object }[]
}

const url = process.argv.at(-1) ?? ''
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? ''
const { client_id, client_secret, toolCalls }: SuiteContext = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}')
const schema = mcp.section?.schema
if (!schema) throw new Error('The feature has no section')
const grant = scenario.includes('client-credentials') ? { grant: 'client_credentials' } : {}
const oauth = client_id === undefined ? undefined : { client_id, ...(client_secret !== undefined && { client_secret }), ...grant }

// The authorization servers of the suite are on loopback.
const host = { ...testHost({ fetch, publicFetch: (address, init) => fetch(address, init as RequestInit) }), clock: systemClock }
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
    by: 'cli:ada',
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

const needsLogin = (error: unknown) => error instanceof Error && error.message.includes("run 'sluice mcp login")

const LOGINS_MAX = 3

/** Runs `work`, again after each login that the server asks for. */
async function loggedIn(work: () => Promise<unknown>): Promise<void> {
  for (let logins = 0; ; logins++) {
    try {
      await work()
      return
    } catch (error) {
      if (!needsLogin(error) || logins === LOGINS_MAX) throw error
      // After the login, the server may ask for another one, such as at another authorization server.
      await command('mcp login').catch((again) => {
        if (!needsLogin(again)) throw again
      })
    }
  }
}

/** Arguments for the tools of the suite that need some. */
const INPUTS: Readonly<Record<string, object>> = { add_numbers: { a: 5, b: 3 } }

/** Calls a tool by the name of the suite. */
async function call(name: string, input: object): Promise<void> {
  const tool = parts.tools?.find((one) => one.name === `mcp__suite__${name}`)
  if (!tool) return
  const text = await tool.run(input, { ...toolContext(signal, host.by), client: 'suite' as ClientId, ask: async () => 'suite' })
  process.stderr.write(`${name}: ${text}\n`)
}

await parts.register?.(signal)
await loggedIn(() => command('mcp test'))
const names = (parts.tools ?? []).flatMap(({ name }) => (name.startsWith('mcp__suite__') ? [name.slice('mcp__suite__'.length)] : []))
const calls = toolCalls ?? names.map((name) => ({ name, arguments: INPUTS[name] ?? {} }))
for (const { name, arguments: input } of calls) await loggedIn(() => call(name, input)).catch((error) => process.stderr.write(`${error}\n`))
await parts.close?.()
