import { afterEach, describe, expect, test } from 'vitest'
import { arrange, closeArranged, serverWith } from './testing/arrange.ts'
import { type FakeProcess, FakeServer } from './testing/fake-server.ts'
import { waitFor } from './testing/wait-for.ts'

afterEach(closeArranged)

describe('a hostile server', () => {
  test('that does not list its tools leaves no process behind', async () => {
    const server = new FakeServer()
    server.methods['tools/list'] = () => {
      throw new Error('no list')
    }
    const { host } = await arrange({}, server)
    await waitFor(() => expect(host.logs.map(({ message }) => message)).toContain('MCP server does not answer'))
    await waitFor(() => expect(server.running).toEqual([]))
  })

  test('that says its tools have changed before it is asked for them is listed once', async () => {
    const server = serverWith({ name: 'echo' })
    server.methods.initialize = (_, process) => {
      process.notify('notifications/tools/list_changed')
      return { protocolVersion: '2025-11-25', capabilities: server.capabilities, serverInfo: { name: 'fake', version: '1' } }
    }
    const { listed, host } = await arrange({}, server)
    await listed()
    expect(host.logs.filter(({ fields }) => fields.error !== undefined)).toEqual([])
  })

  test('that floods with notifications delays nothing but itself', async () => {
    const { listed, call, server } = await arrange({}, serverWith({ name: 'echo' }))
    await listed()
    await call('mcp__notes__echo')
    for (let count = 0; count < 50; count++)
      server.running[0]?.print(`${'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'.repeat(1000)}`)
    expect(await call('mcp__notes__echo', {}, { client: 'bob' })).toBe('ran echo')
    expect(server.running.flatMap(({ received }) => received).filter(({ method }) => method === 'tools/list').length).toBeLessThan(4)
  })

  test('that sends an endless line is stopped', async () => {
    const endless = {
      name: 'endless',
      run: (_: object, process: { print(output: string): void }) => {
        for (let count = 0; count < 9; count++) process.print('x'.repeat(1024 * 1024))
        return new Promise(() => {})
      },
    }
    const { listed, call, server } = await arrange({}, serverWith(endless))
    await listed()
    await expect(call('mcp__notes__endless')).rejects.toMatchObject({
      message: expect.stringContaining('a message has more than 8388608 bytes'),
    })
    await waitFor(() => expect(server.running).toEqual([]))
  })

  test('may print lines that are not messages', async () => {
    const chatty = {
      name: 'chatty',
      run: (_: object, process: { print(output: string): void }) => process.print('hello\n{"a":1}\n{broken\n\n[]\n'),
    }
    const { listed, call } = await arrange({}, serverWith(chatty))
    await listed()
    expect(await call('mcp__notes__chatty')).toBe('ran chatty')
  })

  test('gets no answer to a request for a model', async () => {
    const { listed, call, server } = await arrange({}, serverWith({ name: 'echo' }))
    await listed()
    await call('mcp__notes__echo')
    const answer = await server.running[0]?.ask('sampling/createMessage', { messages: [], maxTokens: 10 })
    expect(answer).toMatchObject({ error: { code: -32601 } })
    expect(await server.running[0]?.ask('roots/list')).toMatchObject({ result: { roots: [{ uri: 'file:///workspace' }] } })
    const initialize = server.running[0]?.received.find(({ method }) => method === 'initialize')
    expect(initialize?.params?.capabilities).toEqual({ roots: {}, elicitation: { form: {} } })
  })

  test('that answers what was not asked is read no faster than one that sends notifications', async () => {
    const { listed, call, server, host } = await arrange({}, serverWith({ name: 'echo' }))
    await listed()
    await call('mcp__notes__echo')
    const [process] = server.running
    await waitFor(() => expect(host.clock.sleeping).toBe(1))
    process?.print('{"jsonrpc":"2.0","id":999,"result":{}}\n'.repeat(2500))
    await waitFor(() => expect(host.clock.sleeping).toBe(2))
    expect(await call('mcp__notes__echo', {}, { client: 'bob' })).toBe('ran echo')
    await host.advance(1000)
    expect(await call('mcp__notes__echo')).toBe('ran echo')
  })

  test('that asks and asks without reading the answers is stopped', async () => {
    const { listed, call, server, host } = await arrange({}, serverWith({ name: 'echo' }))
    await listed()
    await call('mcp__notes__echo')
    const [process] = server.running
    process?.stopReading()
    const long = 'x'.repeat(1024 * 1024)
    for (let count = 0; count < 40; count++) process?.print(`{"jsonrpc":"2.0","id":"${count}${long}","method":"ping"}\n`)
    await waitFor(async () => {
      await host.advance(1000)
      expect(process?.isRunning).toBe(false)
    })
    expect(await call('mcp__notes__echo')).toBe('ran echo')
  })

  test('whose answer is not a message fails the call, and the error quotes the answer', async () => {
    const garbles = {
      name: 'garbles',
      run: (_: object, process: FakeProcess) => {
        process.print('{"jsonrpc":"2.0","id":3,"result":{"content":[\n')
        return new Promise(() => {})
      },
    }
    const { listed, call } = await arrange({ timeout_secs: 1 }, serverWith(garbles))
    await listed()
    await expect(call('mcp__notes__garbles')).rejects.toMatchObject({
      code: 'upstream_timeout',
      message:
        "The MCP server 'notes' did not run 'garbles' in time; one of its messages was not understood: the output has a line that is not a message: " +
        '{"jsonrpc":"2.0","id":3,"result":{"content":[',
    })
  })

  test('whose answers have the wrong form fails the call, and no other one', async () => {
    const odd = [
      { content: 'text' },
      { content: [{ type: 'video', text: 7 }] },
      { content: [{ type: 'text' }] },
      { content: [{ type: 'text', text: 'fine' }], isError: 'no' },
    ]
    const { listed, call } = await arrange({}, serverWith({ name: 'odd', run: () => odd.shift() }, { name: 'echo' }))
    await listed()
    for (let count = odd.length; count > 0; count--)
      await expect(call('mcp__notes__odd')).rejects.toMatchObject({
        code: 'upstream',
        message: expect.stringMatching(/^The MCP server 'notes' did not run 'odd': .{10,400}$/),
      })
    expect(await call('mcp__notes__echo')).toBe('ran echo')
  })

  test('that lists names twice, empty or endless keeps its other tools', async () => {
    const names = ['echo', 'echo', '', 'x'.repeat(300), 'tool\u0000with\nodd ünïcode', 'a'.repeat(200)]
    const { listed, parts, call } = await arrange({}, serverWith(...names.map((name) => ({ name }))))
    await listed()
    const offered = parts().tools?.map(({ name }) => name) ?? []
    expect(offered).toHaveLength(3)
    for (const name of offered) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
    expect(await call('mcp__notes__echo')).toBe('ran echo')
  })

  test('that sends unknown notifications disturbs no call', async () => {
    const odd = {
      name: 'odd',
      run: (_: object, process: FakeProcess) => {
        process.notify('notifications/nonsense', { a: 1 })
        process.print('{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":7}\n')
        process.print('{"jsonrpc":"2.0","id":{},"result":{}}\n{"jsonrpc":"2.0"}\n{"jsonrpc":"2.0","method":5}\n')
      },
    }
    const { listed, call, server } = await arrange({}, serverWith(odd))
    await listed()
    expect(await call('mcp__notes__odd')).toBe('ran odd')
    expect(await server.running.at(-1)?.ask('nonsense/method')).toMatchObject({ error: { code: -32601 } })
  })
})
