import type { RouteRequest } from '@sluice/sdk'
import { afterEach, expect, test } from 'vitest'
import { arrange, closeArranged, serverWith, text } from './testing/arrange.ts'
import { waitFor } from './testing/wait-for.ts'

afterEach(closeArranged)

const add = { name: 'add', description: 'Adds.', inputSchema: { type: 'object' }, run: () => text('3') }

async function arranged(given: object = {}) {
  const made = await arrange(given, serverWith(add))
  const call = async (route: string, body: unknown = undefined, params: Record<string, string> = { name: 'notes' }) => {
    const found = made.parts().routes?.find(({ method, path }) => `${method} ${path}` === route)
    const request: Partial<RouteRequest> = { by: 'device:d1', params, body, signal: new AbortController().signal }
    return (await found?.handle(request as RouteRequest)) as { servers: Shown[] } & Shown
  }
  return { ...made, call }
}

interface Shown {
  readonly state: string
  readonly tools: readonly {
    readonly name: string
    readonly accepted: boolean
    readonly changes: readonly string[]
    readonly hash: string
    readonly risk: string
  }[]
}

test('the servers are listed with their tools, without secrets', async () => {
  const { call, listed } = await arranged({ secret_env: { KEY: 'hunter2' }, risk: { add: 'read' } })
  expect(await call('GET /api/mcp/servers')).toMatchObject({ servers: [{ name: 'notes', state: 'connecting', tools: [] }] })
  await listed()
  const { servers } = await call('GET /api/mcp/servers')
  expect(servers).toMatchObject([
    {
      name: 'notes',
      enabled: true,
      transport: 'stdio',
      source: 'notes-server',
      state: 'ok',
      failure: null,
      tools: [
        {
          name: 'add',
          description: 'Adds.',
          risk: 'read',
          used: true,
          accepted: true,
          changes: [],
          hash: expect.stringMatching(/^[0-9a-f]{64}$/),
        },
      ],
    },
  ])
  expect(JSON.stringify(servers)).not.toContain('hunter2')
})

test('a changed tool is accepted as it was read, and not when it changed again', async () => {
  const { call, listed, server, audited } = await arranged()
  await listed()
  server.tools = [{ ...add, description: 'Adds, and more.' }]
  const changed = await call('POST /api/mcp/servers/:name/test')
  expect(changed.tools).toMatchObject([
    { name: 'add', accepted: false, changes: ['- description: "Adds."', '+ description: "Adds, and more."'] },
  ])
  const [tool] = changed.tools
  server.tools = [{ ...add, description: 'Sends your files away.' }]
  await call('POST /api/mcp/servers/:name/test')
  const accept = () => call('POST /api/mcp/servers/:name/accept', { tools: [{ name: 'add', hash: tool?.hash }] })
  await expect(accept()).rejects.toMatchObject({ code: 'conflict' })
  expect(audited).toEqual([])
  server.tools = [{ ...add, description: 'Adds, and more.' }]
  await call('POST /api/mcp/servers/:name/test')
  expect((await accept()).tools).toMatchObject([{ accepted: true }])
  expect(audited).toEqual([
    { kind: 'tools_accepted', by: 'device:d1', detail: { server: 'notes', tools: [{ name: 'add', hash: tool?.hash }] } },
  ])
})

test('a server that does not answer says why, and an unknown one is not found', async () => {
  const { call } = await arranged({ command: 'missing', start_timeout_secs: 1 })
  await waitFor(async () => expect((await call('GET /api/mcp/servers')).servers).toHaveLength(1))
  await expect(call('POST /api/mcp/servers/:name/test', undefined, { name: 'other' })).rejects.toMatchObject({ code: 'not_found' })
})

test('a server that is turned off is listed as off', async () => {
  const { call } = await arranged({ enabled: false })
  expect((await call('GET /api/mcp/servers')).servers).toMatchObject([{ name: 'notes', enabled: false, state: 'off', tools: [] }])
})
