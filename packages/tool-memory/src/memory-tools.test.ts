import { type ClientId, rowOf, SHARED_MEMORIES, type ToolContext, type ToolReport, UNOWNED_MEMORIES } from '@sluice/sdk'
import { testHost, throwingHost } from '@sluice/testkit/host'
import { memoryEntries } from '@sluice/testkit/memory-entries'
import * as v from 'valibot'
import { expect, it } from 'vitest'
import feature from './index.ts'

const context: ToolContext = {
  ...testHost().by,
  client: 'client' as ClientId,
  standing: 'operator',
  caller: 'device:a',
  session: null,
  turn: 'turn',
  signal: new AbortController().signal,
  trace: { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentId: null },
}

/** Runs tools like the executor, which parses the input with the schema first. The caller is `device:a` unless a test names another. */
function arrange(config = { shared: false }) {
  const memory = memoryEntries()
  const host = testHost({ services: { memory } })
  const tools = feature.build(host, config).tools ?? []
  const as = (caller: string | undefined) => async (name: string, input: object) => {
    const tool = tools.find((candidate) => candidate.name === name)
    if (!tool) throw new Error(`no tool ${name}`)
    const { caller: _, ...withoutCaller } = context
    return tool.run(v.parse(tool.input, input), caller === undefined ? withoutCaller : { ...withoutCaller, caller })
  }
  return { host, memory, tools, as, run: as('device:a') }
}

it('builds the tools of the catalogue row without I/O', () => {
  expect(feature.build(throwingHost(), { shared: false }).tools?.map(({ name }) => name)).toEqual(rowOf('tool-memory')?.tools)
})

it('recalling has risk read, storing and forgetting have risk write', () => {
  expect(arrange().tools.map(({ name, risk }) => [name, risk])).toEqual([
    ['memory_store', 'write'],
    ['memory_recall', 'read'],
    ['memory_forget', 'write'],
  ])
})

it('recalls a stored text with its category and day', async () => {
  const { run } = arrange()
  expect(await run('memory_store', { key: 'timezone', content: 'Europe/Oslo' })).toBe('Remembered timezone (core).')
  await run('memory_store', { key: 'lunch', content: 'soup', category: 'daily' })
  expect(await run('memory_recall', { query: 'Oslo' })).toBe('timezone (core, 2026-01-01):\nEurope/Oslo')
  expect(await run('memory_recall', {})).toBe('lunch (daily, 2026-01-01):\nsoup\n\ntimezone (core, 2026-01-01):\nEurope/Oslo')
  expect(await run('memory_recall', { limit: 1 })).toBe('lunch (daily, 2026-01-01):\nsoup')
})

it('keeps the memories of a linked caller for the person', async () => {
  const { tools, memory, run } = arrange()
  const [store] = tools
  await store?.run({ key: 'dog', content: 'Rex', category: 'core' } as never, { ...context, person: 'channel:x/bot/ann' })
  expect(await memory.get('channel:x/bot/ann', 'dog')).toMatchObject({ content: 'Rex' })
  expect(await run('memory_recall', {})).toBe('Nothing is remembered yet.')
})

it('recalls nothing of a person where others read the answers, and what a room shares in the room', async () => {
  const { tools, run } = arrange()
  const [, recall] = tools
  await run('memory_store', { key: 'door_code', content: '4711' })
  const ask = (session: string) => recall?.run({ query: 'door_code', limit: 5 } as never, { ...context, session, isInRoom: true } as never)
  expect(await ask('channel:x/bot/room/ann')).toBe('No memory matches "door_code".')
  expect(await recall?.run({ query: '', limit: 5 } as never, { ...context, isInRoom: true } as never)).toBe('Nothing is remembered yet.')
  expect(await run('memory_recall', { query: 'door_code' })).toContain('4711')
})

it('keeps the memories of each client private', async () => {
  const { as, run } = arrange()
  await run('memory_store', { key: 'door_code', content: '4711' })
  for (const other of ['device:b', 'channel:roomchat/bot/a', 'cli', 'sop:device:a']) {
    const ask = as(other)
    expect(await ask('memory_recall', { query: '4711' })).toBe('No memory matches "4711".')
    expect(await ask('memory_recall', {})).toBe('Nothing is remembered yet.')
    expect(await ask('memory_forget', { key: 'door_code' })).toBe('Nothing was remembered under door_code.')
    await ask('memory_store', { key: 'door_code', content: other })
    expect(await ask('memory_recall', { query: 'door_code' })).toContain(other)
    expect(await run('memory_recall', {})).toBe('door_code (core, 2026-01-01):\n4711')
  }
})

it('lets every client recall shared and unowned memories, but not change them', async () => {
  const { memory, as, run } = arrange()
  for (const [owner, key] of [
    [SHARED_MEMORIES, 'house_rule'],
    [UNOWNED_MEMORIES, 'old_note'],
  ] as const) {
    await memory.put({ owner, key, content: 'for all', category: 'core', untrusted: false, atMs: 0 })
    expect(await run('memory_recall', { query: key })).toContain('for all')
    expect(await run('memory_forget', { key })).toBe(`${key} is shared by all clients and was kept: only the operator can remove it.`)
    await run('memory_store', { key, content: 'mine' })
    expect(await as('device:b')('memory_recall', { query: key })).toContain('for all')
  }
})

it('with shared = true, new memories are shared and private ones stay private', async () => {
  const { memory, as, run } = arrange({ shared: true })
  await memory.put({ owner: 'device:a', key: 'door_code', content: '4711', category: 'core', untrusted: false, atMs: 0 })
  await run('memory_store', { key: 'timezone', content: 'Europe/Oslo' })
  const ask = as('device:b')
  expect(await ask('memory_recall', { query: 'Oslo' })).toContain('Europe/Oslo')
  expect(await ask('memory_recall', { query: '4711' })).toBe('No memory matches "4711".')
  expect(await run('memory_recall', { query: '4711' })).toContain('4711')
  await ask('memory_store', { key: 'timezone', content: 'Asia/Tokyo' })
  expect(await run('memory_recall', { query: 'timezone' })).toContain('Asia/Tokyo')
  expect(await run('memory_forget', { key: 'timezone' })).toBe('Forgot timezone.')
})

it('rejects a call without a known caller as unavailable', async () => {
  const { as } = arrange()
  const ask = as(undefined)
  for (const [tool, input] of [
    ['memory_store', { key: 'k', content: 'x' }],
    ['memory_recall', {}],
    ['memory_forget', { key: 'k' }],
  ] as const)
    await expect(ask(tool, input)).rejects.toMatchObject({ code: 'unavailable' })
})

it('replaces the text of a key and updates its time', async () => {
  const { run, host } = arrange()
  await run('memory_store', { key: 'timezone', content: 'Europe/Oslo' })
  await host.advance(86_400_000)
  await run('memory_store', { key: 'timezone', content: 'Asia/Tokyo' })
  expect(await run('memory_recall', { query: 'timezone' })).toBe('timezone (core, 2026-01-02):\nAsia/Tokyo')
})

it('forgets a key, and says when there is nothing to forget', async () => {
  const { run } = arrange()
  await run('memory_store', { key: 'timezone', content: 'Europe/Oslo' })
  expect(await run('memory_forget', { key: 'timezone' })).toBe('Forgot timezone.')
  expect(await run('memory_forget', { key: 'timezone' })).toBe('Nothing was remembered under timezone.')
  expect(await run('memory_recall', {})).toBe('Nothing is remembered yet.')
  expect(await run('memory_recall', { query: 'Oslo' })).toBe('No memory matches "Oslo".')
})

it.each<[tool: string, input: object]>([
  ['memory_store', { key: '', content: 'x' }],
  ['memory_store', { key: ' timezone', content: 'x' }],
  ['memory_store', { key: 'two\nlines', content: 'x' }],
  ['memory_store', { key: 'k'.repeat(201), content: 'x' }],
  ['memory_store', { key: 'k', content: ' \n' }],
  ['memory_store', { key: 'k', content: 'x'.repeat(8001) }],
  ['memory_store', { key: 'k', content: 'x', category: 'c'.repeat(65) }],
  ['memory_recall', { query: 'q'.repeat(1001) }],
  ['memory_recall', { limit: 0 }],
  ['memory_recall', { limit: 21 }],
  ['memory_forget', { key: 'k'.repeat(201) }],
])('rejects input out of bounds: %s %o', async (tool, input) => {
  await expect(arrange().run(tool, input)).rejects.toThrow(v.ValiError)
})

it('accepts input at the bounds', async () => {
  const { run } = arrange()
  await run('memory_store', { key: 'k'.repeat(200), content: 'x'.repeat(8000), category: 'c'.repeat(64) })
  expect(await run('memory_recall', { limit: 20 })).toContain('x'.repeat(8000))
})

it('rejects every tool as unavailable when the host keeps no memories', async () => {
  for (const tool of feature.build(testHost(), { shared: false }).tools ?? [])
    await expect(tool.run({ key: 'k', content: 'x' }, context)).rejects.toMatchObject({ code: 'unavailable' })
})

it.each<[who: string, more: Partial<ToolContext>, isUntrusted: boolean]>([
  ['a turn that has read nothing of others', { hasReadUntrusted: () => false }, false],
  ['a turn that has read a page', { hasReadUntrusted: () => true }, true],
  ['a call outside of a turn, of which nothing is known', {}, true],
  ['a stranger', { hasReadUntrusted: () => false, standing: 'stranger' }, true],
  ['a listed sender', { hasReadUntrusted: () => false, standing: 'listed' }, false],
])('marks what it remembers for %s, and reads it back as such', async (_who, more, isUntrusted) => {
  const { memory, tools } = arrange()
  const use = async (name: string, input: object) => {
    const tool = tools.find((one) => one.name === name) ?? expect.fail(name)
    const reports: ToolReport[] = []
    await tool.run(v.parse(tool.input, input), { ...context, ...more, report: (report) => void reports.push(report) })
    return reports
  }
  await use('memory_store', { key: 'k', content: 'blue' })
  expect((await memory.get('device:a', 'k'))?.untrusted).toBe(isUntrusted)
  expect(await use('memory_recall', { query: 'blue' })).toEqual(isUntrusted ? [{ untrusted: 'memory_recall' }] : [])
})
