/** A daemon with published MCP servers, used by the client of the SDK over its own MCP side. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { type Daemon, startDaemon } from '@sluice/daemon'
import mcp from '@sluice/mcp'
import offline from '@sluice/provider-offline'
import { afterAll, beforeAll, expect, test } from 'vitest'

const require = createRequire(import.meta.url)
const programOf = (name: string): string => {
  const manifest = require.resolve(`@modelcontextprotocol/server-${name}/package.json`)
  return join(dirname(manifest), Object.values<string>(JSON.parse(readFileSync(manifest, 'utf8')).bin)[0] ?? '')
}
const server = (name: string, args: readonly string[], more = '') => `
[mcp.servers.${name}]
command = ${JSON.stringify(process.execPath)}
args = ${JSON.stringify([programOf(name), ...args])}
${more}`

const CALLABLE = [
  'mcp__filesystem__write_file',
  'mcp__filesystem__read_text_file',
  'mcp__memory__create_entities',
  'mcp__memory__read_graph',
  'mcp__everything__echo',
  'mcp__everything__get-sum',
  'mcp__everything__get-structured-content',
  'mcp_resources',
  'mcp_prompts',
]

let folder: string
let daemon: Daemon
let client: Client

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-published-'))
  mkdirSync(join(folder, 'workspace'))
  const configFile = join(folder, 'config.toml')
  const config = `
[gateway]
require_pairing = false
callable_tools = ${JSON.stringify(CALLABLE)}
[log]
level = "error"
[provider]
kind = "offline"
[agent]
workspace = ${JSON.stringify(join(folder, 'workspace'))}
[security.policy]
level = "full"
[security.sandbox]
enabled = false
[mcp.serve]
enabled = true
${server('filesystem', ['.'])}
${server('memory', [], `env = { MEMORY_FILE_PATH = ${JSON.stringify(join(folder, 'workspace', 'memory.jsonl'))} }`)}
${server('everything', ['stdio'], 'default_risk = "read"')}
`
  writeFileSync(configFile, config, { mode: 0o600 })
  const features = [mcp, offline]
  daemon = await startDaemon({
    features,
    dataDir: folder,
    configFile,
    env: {},
    profile: 'test',
    version: '1.0.0',
    host: '127.0.0.1',
    port: 0,
  })
  client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${daemon.url}/mcp`)))
  const names = async () => (await client.listTools(undefined, { cacheMode: 'refresh' })).tools.map(({ name }) => name)
  await expect.poll(() => names(), { timeout: 100_000, interval: 200 }).toEqual(expect.arrayContaining(CALLABLE))
}, 120_000)

afterAll(async () => {
  await client.close()
  await daemon.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function call(name: string, input: Record<string, unknown>, key?: string) {
  const result = await client.callTool({ name, arguments: input, ...(key !== undefined && { _meta: { 'sluice/idempotency-key': key } }) })
  const text = (result.content as { readonly text?: string }[]).map((block) => block.text).join('')
  return { text, isError: result.isError === true, data: result.structuredContent as Record<string, unknown> | undefined }
}

test('server-filesystem reads and writes in the workspace, and nowhere else', async () => {
  expect(await call('mcp__filesystem__write_file', { path: 'note.txt', content: 'hello' })).toMatchObject({ isError: false })
  expect(readFileSync(join(folder, 'workspace', 'note.txt'), 'utf8')).toBe('hello')
  expect(await call('mcp__filesystem__read_text_file', { path: 'note.txt' })).toMatchObject({ isError: false, text: 'hello' })
  expect(await call('mcp__filesystem__read_text_file', { path: join(folder, 'config.toml') })).toMatchObject({ isError: true })
})

test('server-memory keeps each text once for its key', async () => {
  const entities = [{ name: 'Ann', entityType: 'person', observations: ['likes tea'] }]
  const first = await call('mcp__memory__create_entities', { entities }, 'ann')
  expect(await call('mcp__memory__create_entities', { entities }, 'ann')).toEqual(first)
  expect((await call('mcp__memory__read_graph', {})).text).toContain('likes tea')
  expect(existsSync(join(folder, 'workspace', 'memory.jsonl'))).toBe(true)
})

test('server-everything answers with texts and data, and lists resources and prompts', async () => {
  expect((await call('mcp__everything__echo', { message: 'hi' })).text).toContain('hi')
  expect((await call('mcp__everything__get-sum', { a: 2, b: 3 })).text).toContain('5')
  expect((await call('mcp__everything__get-structured-content', { location: 'New York' })).data).toMatchObject({
    temperature: expect.any(Number),
  })
  expect((await call('mcp_resources', { server: 'everything' })).text).toContain('demo://')
  const prompts = (await call('mcp_prompts', { server: 'everything' })).text
  expect(prompts).toContain('prompt')
})

test('turns at the same time get their own answers', async () => {
  const sums = [1, 2, 3].map((a) => call('send_message', { message: `/tool mcp__everything__get-sum {"a":${a},"b":10}` }))
  expect((await Promise.all(sums)).map(({ text }) => /\b1[123]\b/.exec(text)?.[0])).toEqual(['11', '12', '13'])
})
