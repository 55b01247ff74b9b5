import { type ClientId, type MemoryEntry, type MemoryStore, rowOf, type ToolContext } from '@sluice/sdk'
import { testHost, throwingHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { expect, it } from 'vitest'
import feature from './index.ts'

/** Entries that contain every word of the query, newest first. */
function fakeMemory(): MemoryStore {
  const kept = new Map<string, MemoryEntry>()
  return {
    async put({ atMs, ...entry }) {
      kept.delete(entry.key)
      kept.set(entry.key, { ...entry, updatedAtMs: atMs })
    },
    search: async (query, limit) =>
      [...kept.values()]
        .reverse()
        .filter(({ key, content }) => query.split(/\s+/).every((word) => `${key} ${content}`.includes(word)))
        .slice(0, limit),
    get: async (key) => kept.get(key),
    delete: async (key) => kept.delete(key),
  }
}

const context: ToolContext = {
  client: 'client' as ClientId,
  session: null,
  turn: 'turn',
  signal: new AbortController().signal,
  trace: { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentId: null },
}

/** Runs tools as the executor does: input first through the schema. */
function arrange() {
  const host = testHost({ services: { memory: fakeMemory() } })
  const tools = feature.build(host, {}).tools ?? []
  const run = async (name: string, input: object) => {
    const tool = tools.find((candidate) => candidate.name === name)
    if (!tool) throw new Error(`no tool ${name}`)
    return tool.run(v.parse(tool.input, input), context)
  }
  return { host, tools, run }
}

it('tool names equal the catalogue row, and build does no I/O', () => {
  expect(feature.build(throwingHost(), {}).tools?.map(({ name }) => name)).toEqual(rowOf('tool-memory')?.tools)
})

it('looking is read, changing is write', () => {
  expect(arrange().tools.map(({ name, risk }) => [name, risk])).toEqual([
    ['memory_store', 'write'],
    ['memory_recall', 'read'],
    ['memory_forget', 'write'],
  ])
})

it('what is stored is recalled with its category and day, also by another session', async () => {
  const { run } = arrange()
  expect(await run('memory_store', { key: 'timezone', content: 'Europe/Oslo' })).toBe('Remembered timezone (core).')
  await run('memory_store', { key: 'lunch', content: 'soup', category: 'daily' })
  expect(await run('memory_recall', { query: 'Oslo' })).toBe('timezone (core, 2026-01-01):\nEurope/Oslo')
  expect(await run('memory_recall', {})).toBe('lunch (daily, 2026-01-01):\nsoup\n\ntimezone (core, 2026-01-01):\nEurope/Oslo')
  expect(await run('memory_recall', { limit: 1 })).toBe('lunch (daily, 2026-01-01):\nsoup')
})

it('the same key is replaced, and the time is that of the change', async () => {
  const { run, host } = arrange()
  await run('memory_store', { key: 'timezone', content: 'Europe/Oslo' })
  await host.advance(86_400_000)
  await run('memory_store', { key: 'timezone', content: 'Asia/Tokyo' })
  expect(await run('memory_recall', { query: 'timezone' })).toBe('timezone (core, 2026-01-02):\nAsia/Tokyo')
})

it('what is forgotten is gone, and forgetting nothing says so', async () => {
  const { run } = arrange()
  await run('memory_store', { key: 'timezone', content: 'Europe/Oslo' })
  expect(await run('memory_forget', { key: 'timezone' })).toBe('Forgot timezone.')
  expect(await run('memory_forget', { key: 'timezone' })).toBe('Nothing was remembered under timezone.')
  expect(await run('memory_recall', {})).toBe('Nothing is remembered yet.')
  expect(await run('memory_recall', { query: 'Oslo' })).toBe('Nothing remembered matches "Oslo".')
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
])('input out of bounds does not run: %s %o', async (tool, input) => {
  await expect(arrange().run(tool, input)).rejects.toThrow(v.ValiError)
})

it('the bounds themselves are allowed', async () => {
  const { run } = arrange()
  await run('memory_store', { key: 'k'.repeat(200), content: 'x'.repeat(8000), category: 'c'.repeat(64) })
  expect(await run('memory_recall', { limit: 20 })).toContain('x'.repeat(8000))
})

it('without a memory each tool is refused as unavailable', async () => {
  for (const tool of feature.build(testHost(), {}).tools ?? [])
    await expect(tool.run({ key: 'k', content: 'x' }, context)).rejects.toMatchObject({ code: 'unavailable' })
})
