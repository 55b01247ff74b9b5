import { createMcpHandler, Server } from '@modelcontextprotocol/server'
import type { ClientId, Tool } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { afterEach, describe, expect, test } from 'vitest'
import feature from './index.ts'
import { FakeServer } from './testing/fake-server.ts'
import { waitFor } from './testing/wait-for.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

async function use(host: ReturnType<typeof testHost>, server: object) {
  const schema = feature.section?.schema
  if (!schema) throw new Error('The feature has no section')
  const parts = feature.build(host, v.parse(schema, { servers: { far: server } }))
  await parts.register?.(new AbortController().signal)
  closing.push(async () => parts.close?.())
  await waitFor(() => expect(host.refreshes).not.toEqual([]))
  const named = (name: string): Tool => {
    const tool = parts.tools?.find((one) => one.name === name)
    if (!tool) throw new Error(`no tool ${name}`)
    return tool
  }
  const call = (name: string, input: object = {}, client = 'ann') =>
    named(name).run(input, { ...toolContext(undefined, host.by), client: client as ClientId })
  return { parts, call }
}

/** A server of the newest revision, which announces changes only to a client that asks for them. */
async function arrangeModern() {
  const seen: string[] = []
  const state = { tools: ['echo'], resources: ['note:1'] }
  const handler = createMcpHandler(() => {
    const capabilities = { tools: { listChanged: true }, resources: { listChanged: true } }
    const server = new Server({ name: 'far', version: '1' }, { capabilities, cacheHints: { 'resources/list': { ttlMs: 3_600_000 } } })
    server.setRequestHandler('tools/list', () => ({
      tools: state.tools.map((name) => ({ name, inputSchema: { type: 'object' as const } })),
    }))
    server.setRequestHandler('tools/call', () => ({ content: [{ type: 'text', text: 'ran' }] }))
    server.setRequestHandler('resources/list', () => ({ resources: state.resources.map((uri) => ({ uri, name: uri })) }))
    server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [] }))
    return server
  })
  const host = testHost({
    fetch: async (input, init) => {
      const request = new Request(input, init)
      if (request.method === 'POST') seen.push(JSON.parse(await request.clone().text()).method)
      return handler.fetch(request)
    },
  })
  closing.push(() => handler.close())
  return { ...(await use(host, { url: 'http://far.example/mcp' })), host, handler, state, seen }
}

const count = (all: readonly string[], one: string) => all.filter((each) => each === one).length

describe('a server of the newest revision', () => {
  test('is asked for announcements, and its changed tools make a new list', async () => {
    const { parts, call, host, handler, state, seen } = await arrangeModern()
    await call('mcp__far__echo')
    await waitFor(() => expect(seen).toContain('subscriptions/listen'))
    state.tools = ['more']
    await waitFor(async () => {
      handler.notify.toolsChanged()
      await host.advance(1000)
      expect(parts.tools?.map(({ name }) => name)).not.toContain('mcp__far__echo')
    })
  })

  test('says how long a list of resources is kept; an announced change ends this', async () => {
    const { call, handler, state, seen } = await arrangeModern()
    expect(await call('mcp_resources', { server: 'far' })).toContain('note:1')
    expect(await call('mcp_resources', { server: 'far' })).toContain('note:1')
    expect(count(seen, 'resources/list')).toBe(1)
    state.resources = ['note:2']
    await waitFor(async () => {
      handler.notify.resourcesChanged()
      expect(await call('mcp_resources', { server: 'far' })).toContain('note:2')
    })
  })
})

describe('announcements of changed tools', () => {
  test('make at most ten lists in a minute for each connection', async () => {
    const server = Object.assign(new FakeServer(), { tools: [{ name: 'echo' }] })
    const host = testHost({ spawn: server.spawn })
    const { call } = await use(host, { command: 'far' })
    await call('mcp__far__echo', {}, 'ann')
    await call('mcp__far__echo', {}, 'bob')
    const [ann, bob] = server.running.slice(-2)
    const lists = (process = ann) => process?.received.filter(({ method }) => method === 'tools/list').length ?? 0
    for (let second = 0; second < 30; second++) {
      ann?.notify('notifications/tools/list_changed')
      await host.advance(1000)
    }
    expect(lists()).toBe(1 + 10)
    bob?.notify('notifications/tools/list_changed')
    await waitFor(async () => {
      await host.advance(100)
      expect(lists(bob)).toBe(2)
    })
    // The last announcement is not lost.
    await host.advance(60_000)
    await waitFor(() => expect(lists()).toBe(1 + 10 + 1))
  })
})
