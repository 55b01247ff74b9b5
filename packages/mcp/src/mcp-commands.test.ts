import { AppError, CATALOGUE, type CommandContext, type DeviceRecord } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import feature from './index.ts'
import { FakeServer } from './testing/fake-server.ts'

/** The commands of a daemon with these servers. */
async function arrange(servers: object = { notes: { command: 'notes-server' } }, { answers = [] as string[], asks = true } = {}) {
  const server = Object.assign(new FakeServer(), { tools: [{ name: 'echo', description: 'Echoes.' }] })
  const audited: DeviceRecord[] = []
  const host = testHost({ spawn: server.spawn, services: { audit: async (record: DeviceRecord) => void audited.push(record) } })
  const schema = feature.section?.schema
  if (!schema) throw new Error('The feature has no section')
  const parts = feature.build(host, v.parse(schema, { servers }))
  await parts.register?.(new AbortController().signal)
  const saved: Readonly<Record<string, unknown>>[] = []
  const mcp = async (line: string, json = false) => {
    const words = line.split(' ')
    const command = parts.commands?.find(({ name }) => name === `mcp ${words[0]}`)
    const printed: string[] = []
    const warned: string[] = []
    const context: CommandContext = {
      args: words.slice(1),
      cwd: '/',
      json,
      by: 'cli:ada',
      print: (text) => void printed.push(text),
      warn: (text) => void warned.push(text),
      signal: new AbortController().signal,
      addToConfig: async () => {},
      setInConfig: async (values) => void saved.push(values),
      ...(asks && { ask: async () => answers.shift() }),
    }
    return { code: await command?.run(context), printed, warned }
  }
  return { host, server, parts, mcp, saved, audited }
}

describe('sluice mcp', () => {
  test('has the commands of the catalogue, with and without servers', async () => {
    for (const servers of [{}, { notes: { command: 'x' } }])
      expect((await arrange(servers)).parts.commands?.map(({ name }) => name)).toEqual(CATALOGUE.mcp.commands)
  })

  test('list shows servers with their state', async () => {
    const { mcp, host } = await arrange({
      notes: { command: 'notes-server', args: ['--all'] },
      off: { url: 'https://h.example/mcp', enabled: false },
    })
    await expect.poll(() => host.refreshes).not.toEqual([])
    expect((await mcp('list')).printed).toEqual(['notes: notes-server --all (1 tool)', 'off: https://h.example/mcp (turned off)'])
    expect(JSON.parse((await mcp('list', true)).printed[0] ?? '')).toMatchObject([
      { name: 'notes', tools: 1, changed: [], problem: null },
      {},
    ])
    expect((await (await arrange({})).mcp('list')).printed).toEqual(["No MCP server is configured; 'sluice mcp add' adds one."])
  })

  test('test shows what is offered and what has changed', async () => {
    const { mcp, host, server, audited } = await arrange()
    await expect.poll(() => host.refreshes).not.toEqual([])
    expect(await mcp('test notes')).toEqual({
      code: 0,
      printed: ['notes answers. It has 1 tool.', '  echo (execute): Echoes.'],
      warned: [],
    })
    server.tools = [
      { name: 'echo', description: 'Evil.\u001b[2J' },
      { name: "it's", description: '' },
    ]
    const accept = (tool: string) =>
      expect.stringMatching(new RegExp(`^    To use it as it is shown: sluice mcp accept notes ${tool} [0-9a-f]{64}$`))
    expect((await mcp('test notes')).printed).toEqual([
      'notes answers. It has 2 tools.',
      '  echo (execute, CHANGED: each call asks): Evil.\\u001b[2J',
      '    - description: "Echoes."',
      String.raw`    + description: "Evil.\\u001b[2J"`,
      accept('echo'),
      "  it's (NEW: the agent does not have it): ",
      '    + description: ""',
      '    + readOnlyHint: false',
      '    + parameters.type: "object"',
      '    + parameters.properties: {}',
      accept(String.raw`'it'\\''s'`),
    ])
    expect(audited).toEqual([])
  })

  test('accept accepts exactly the definition that was shown', async () => {
    const { mcp, host, server, parts, audited } = await arrange()
    await expect.poll(() => host.refreshes).not.toEqual([])
    const hashOf = async () => JSON.parse((await mcp('test notes', true)).printed[0] ?? '').tools[0].hash as string
    server.tools = [{ name: 'echo', description: 'Evil.\u001b[2J' }]
    const hash = await hashOf()
    for (const other of [hash.slice(0, 16), hash.toUpperCase(), ''])
      await expect(mcp(`accept notes echo ${other}`)).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(mcp(`accept notes more ${hash}`)).rejects.toMatchObject({ code: 'not_found' })
    server.tools = [{ name: 'echo', description: 'Echoes, and more.' }]
    const next = await hashOf()
    await expect(mcp(`accept notes echo ${hash}`)).rejects.toMatchObject({ code: 'conflict' })
    expect(audited).toEqual([])
    expect(await mcp(`accept notes echo ${next}`)).toMatchObject({ code: 0, printed: ['Accepted echo.'] })
    // Nothing is left to accept, so nothing more is recorded.
    await mcp(`accept notes echo ${next}`)
    expect(audited).toEqual([{ kind: 'tools_accepted', by: 'cli:ada', detail: { server: 'notes', tools: [{ name: 'echo', hash: next }] } }])
    expect(parts.tools?.[0]?.description).toBe('Echoes, and more.')
  })

  test('test fails with the reason', async () => {
    const { mcp, server } = await arrange()
    server.broken = 2
    await expect(mcp('test notes')).rejects.toMatchObject({ message: expect.stringContaining('exit code 2') })
    await expect(mcp('test other')).rejects.toMatchObject({ code: 'not_found' })
    await expect(mcp('test')).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('usage: sluice mcp test <name>'),
    })
  })

  test('add saves the server, asks for secrets, and tries it', async () => {
    const { mcp, saved, server } = await arrange({}, { answers: ['hunter2hunter2'] })
    const { code, printed } = await mcp(
      'add notes --env MODE=a=b --secret-env TOKEN --network --writable . --shared -- notes-server --all -v',
    )
    expect([code, printed[0]]).toEqual([0, 'notes answers. It has 1 tool.'])
    expect(saved).toEqual([
      {
        'mcp.servers.notes.command': 'notes-server',
        'mcp.servers.notes.args': ['--all', '-v'],
        'mcp.servers.notes.network': true,
        'mcp.servers.notes.writable': ['.'],
        'mcp.servers.notes.scope': 'shared',
        'mcp.servers.notes.env.MODE': 'a=b',
        'mcp.servers.notes.secret_env.TOKEN': 'hunter2hunter2',
      },
    ])
    expect(server.running).toEqual([])
  })

  test('add keeps a server that does not work yet, and says why', async () => {
    const { mcp, saved, server } = await arrange({})
    server.broken = new AppError('not_found', "the program 'x' does not exist")
    const { code, warned } = await mcp('add notes -- x')
    expect([code, saved.length]).toEqual([1, 1])
    expect(warned[0]).toBe(
      "The server was added, but it cannot be used yet: The MCP server 'notes' did not answer: the program 'x' does not exist",
    )
  })

  test('add saves nothing that does not fit', async () => {
    const { mcp, saved } = await arrange({ notes: { command: 'x' } }, { asks: false })
    for (const line of [
      'add',
      'add notes -- y',
      'add a__b -- y',
      'add new',
      'add new --url ftp://x',
      'add new --url https://h.example/ -- y',
      'add new --env x -- y',
    ])
      await expect(mcp(line), line).rejects.toBeInstanceOf(AppError)
    await expect(mcp('add new --header Authorization --url https://h.example/')).rejects.toMatchObject({
      message: expect.stringContaining('sluice config set'),
    })
    expect(saved).toEqual([])
  })

  test('remove deletes the section and what is known', async () => {
    const { mcp, saved, host } = await arrange()
    await expect.poll(() => host.refreshes).not.toEqual([])
    expect((await mcp('remove notes')).printed).toEqual(['Removed notes.'])
    expect(saved).toEqual([{ 'mcp.servers.notes': undefined }])
    expect(await host.keyValue.list('', 10)).toEqual([])
  })
})
