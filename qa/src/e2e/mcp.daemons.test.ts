/** MCP in the built program, in both roles: a server that the agent uses as a process, and this agent as the server of another one. */
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test } from 'vitest'
import { bundle, environment, eventually, post, type RunningDaemon, run, scratch, startDaemon, token } from '../daemons/bundle.ts'

const SERVER = join(import.meta.dirname, '../testing/mcp-server.mjs')
const CONFIG = `
[security.policy]
level = "full"
[security.sandbox]
enabled = false
[gateway]
callable_tools = ["mcp__qa__add", "mcp__qa__hang"]
[mcp.serve]
enabled = true
[mcp.servers.qa]
command = ${JSON.stringify(process.execPath)}
args = [${JSON.stringify(SERVER)}]
risk = { pid = "read" }
`

/** A daemon whose agent knows the tools of the server. */
async function arrange() {
  const { dir, dispose } = scratch(CONFIG)
  const running: RunningDaemon[] = []
  const start = async () => {
    const daemon = await startDaemon('full', dir)
    running.push(daemon)
    return daemon
  }
  onTestFinished(async () => {
    for (const daemon of running) daemon.kill('SIGTERM')
    await Promise.all(running.map(({ exited }) => exited))
    dispose()
  })
  const daemon = await start()
  await eventually(
    async () => (await run('full', ['mcp', 'list', '--data-dir', dir])).stdout,
    (list) => list.includes('3 tools'),
  )
  const calls = join(dir, 'workspace', 'calls.log')
  return { dir, daemon, start, calls: () => (existsSync(calls) ? readFileSync(calls, 'utf8') : '') }
}

const bearer = (value: string) => ({ authorization: `Bearer ${value}` })

test('each device has a process of the server of its own', async () => {
  const { dir, daemon } = await arrange()
  const tokens = [await token('full', dir, 'ann'), await token('full', dir, 'bob')]
  const pid = async (value: string) => (await post(`${daemon.url}/webhook`, { message: '/tool mcp__qa__pid' }, bearer(value))).body.response
  const [ann, bob] = await Promise.all(tokens.map(pid))
  expect(ann).toMatch(/answered:\n\d+$/)
  expect(bob).not.toBe(ann)
  expect(await pid(tokens[0] ?? '')).toBe(ann)
})

test('a call that SIGKILL interrupts is not repeated, and the turn goes on', async () => {
  const { dir, daemon, start, calls } = await arrange()
  const headers = { ...bearer(await token('full', dir)), prefer: 'respond-async' }
  const { body } = await post(`${daemon.url}/webhook`, { message: '/tool mcp__qa__hang' }, headers)
  await eventually(
    async () => calls(),
    (log) => log === 'hang\n',
  )
  daemon.kill('SIGKILL')
  await daemon.exited
  const { url } = await start()
  const turn = await eventually(
    async () => (await (await fetch(`${url}${body.status_url}`, { headers })).json()) as { status: string; response?: string },
    ({ status }) => status === 'done',
  )
  expect(turn.response).toContain('may or may not have taken effect')
  expect(calls()).toBe('hang\n')
})

test('another agent uses this one over standard input and output', async () => {
  const { dir } = await arrange()
  const child = spawn(process.execPath, [bundle('full'), 'mcp', 'serve', '--data-dir', dir], {
    env: environment(),
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exited = new Promise((resolve) => child.on('exit', resolve))
  const answers = new Map<unknown, { result?: { content?: { text: string }[]; tools?: { name: string }[] }; error?: object }>()
  createInterface({ input: child.stdout }).on('line', (line) => answers.set(JSON.parse(line).id, JSON.parse(line)))
  const ask = async (id: number, method: string, params: object) => {
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
    return eventually(
      async () => answers.get(id),
      (answer) => answer !== undefined,
    )
  }
  const clientInfo = { name: 'test', version: '1' }
  expect(await ask(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo })).toMatchObject({
    result: { protocolVersion: '2025-11-25' },
  })
  expect((await ask(2, 'tools/list', {}))?.result?.tools?.map(({ name }) => name)).toContain('start_procedure')
  const answer = await ask(3, 'tools/call', { name: 'send_message', arguments: { message: '/tool mcp__qa__add {"a":2,"b":3}' } })
  expect(answer?.result?.content?.[0]?.text).toMatch(/answered:\n5$/)
  child.stdin.write('not JSON\n')
  expect(
    await eventually(
      async () => answers.get(null),
      (one) => one !== undefined,
    ),
  ).toMatchObject({ error: { code: -32_700 } })
  child.stdin.end()
  expect(await exited).toBe(0)
})

test('a client calls a tool directly, and a call that SIGKILL interrupts is not repeated', async () => {
  const { dir, daemon, start, calls } = await arrange()
  const headers = bearer(await token('full', dir))
  const call = (url: string, tool: string, body: object, more: Record<string, string> = {}) =>
    post(`${url}/api/tools/mcp__qa__${tool}/calls`, body, { ...headers, ...more })
  const sum = await call(daemon.url, 'add', { input: { a: 2, b: 3 } })
  expect(sum).toMatchObject({ status: 200, body: { outcome: 'ok', output: '5', untrusted: 'MCP server qa' } })
  expect(await call(daemon.url, 'pid', { input: {} })).toMatchObject({ status: 404 })

  const once = { 'x-idempotency-key': 'k' }
  const accepted = await call(daemon.url, 'hang', {}, { ...once, prefer: 'respond-async' })
  expect(accepted.status).toBe(202)
  await eventually(
    async () => calls(),
    (log) => log === 'add\nhang\n',
  )
  daemon.kill('SIGKILL')
  await daemon.exited
  const { url } = await start()
  const ended = await eventually(
    async () => call(url, 'hang', {}, once),
    ({ status }) => status === 200,
  )
  expect(ended.body).toMatchObject({ call_id: accepted.body.call_id, outcome: 'interrupted', status: 'done' })
  expect(calls()).toBe('add\nhang\n')
})
