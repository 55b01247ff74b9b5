import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { watchFileOperations } from '@sluice/testkit/files-idle'
import { type TestHost, testHost } from '@sluice/testkit/host'
import * as testkit from '@sluice/testkit/until'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { FolderLibrary } from './folder-library.ts'
// Loaded before the tests, so that no clock advances while the library loads it.
import './load-sops.ts'

let base: string
let folder: string
let host: TestHost
let stop: AbortController
let library: FolderLibrary
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'library-'))
  folder = join(base, 'sops')
  mkdirSync(folder)
  host = testHost()
  stop = new AbortController()
  library = new FolderLibrary({
    settings: () => ({ sources: [{ folder, isAgentWritable: false }], defaultMode: 'auto' }),
    agreed: async () => new Map(),
    clock: host.clock,
    log: host.log,
    events: host.events,
  })
})
afterEach(() => {
  stop.abort()
  rmSync(base, { recursive: true, force: true })
})

function write(name: string, path = `/${name}`): void {
  mkdirSync(join(folder, name), { recursive: true })
  writeFileSync(join(folder, name, 'SOP.md'), '## Steps\n1. **One**\n')
  writeFileSync(
    join(folder, name, 'SOP.toml'),
    `[sop]\nname = "${name}"\ndescription = "x"\n[[triggers]]\ntype = "webhook"\npath = "${path}"\n`,
  )
}

const names = () => library.list().map(({ name }) => name)

const filesIdle = watchFileOperations()

/** Advances the clock until the condition holds. Reading a file takes no time of this clock. */
const until = (holds: () => boolean): Promise<void> => testkit.until(holds, () => host.clock.advance(50).then(filesIdle))

test('the library is empty before the first reload', async () => {
  write('b')
  write('a')
  expect([names(), library.matches('webhook', '/a'), library.get('a')]).toEqual([[], false, undefined])
  await library.reload()
  expect([names(), library.matches('webhook', '/a'), library.get('a')?.name]).toEqual([['a', 'b'], true, 'a'])
  expect(library.match({ source: 'webhook', topic: '/b', payload: null, standing: 'operator' }).map(({ name }) => name)).toEqual(['b'])
  expect(library.topics('webhook')).toEqual(['/a', '/b'])
})

test('a reload notifies callbacks, the log and the event stream', async () => {
  write('good')
  mkdirSync(join(folder, 'bad'))
  writeFileSync(join(folder, 'bad', 'SOP.toml'), 'x')
  const seen: string[][] = []
  const unsubscribe = library.onReload(() => seen.push(names()))
  await library.reload()
  unsubscribe()
  await library.reload()
  expect(seen).toEqual([['good']])
  expect(host.emitted).toEqual(Array(2).fill({ type: 'sops_reloaded', loaded: 1, broken: 1 }))
  expect(host.logs[0]).toMatchObject({ level: 'error', fields: { file: join(folder, 'bad', 'SOP.toml'), line: 1 } })
  expect(library.problems()).toMatchObject([{ severity: 'error' }, { message: expect.stringContaining('missing') }])
})

test('concurrent reloads are merged, and the last change is in force', async () => {
  write('a')
  const first = library.reload()
  write('b')
  await Promise.all([first, library.reload(), library.reload()])
  expect(names()).toEqual(['a', 'b'])
  expect(host.emitted).toHaveLength(2)
})

test('a reload drops a deleted procedure', async () => {
  write('a')
  await library.reload()
  rmSync(join(folder, 'a'), { recursive: true })
  await library.reload()
  expect([names(), library.matches('webhook', '/a')]).toEqual([[], false])
})

test('the watch notices a procedure that is added, changed, moved or removed', async () => {
  write('a')
  void library.watch(stop.signal)
  await library.reload()
  write('b')
  await until(() => names().length === 2)
  write('b', '/elsewhere')
  await until(() => library.matches('webhook', '/elsewhere'))
  renameSync(join(folder, 'a'), join(base, 'a'))
  await until(() => names().join() === 'b')
  renameSync(join(base, 'a'), join(folder, 'c'))
  await until(() => names().join() === 'a,b')
})

test('the watch notices a change in one of many folders', async () => {
  const last = 'z'
  for (let number = 0; number < 450; number++) mkdirSync(join(folder, `a-${number}`))
  write(last)
  void library.watch(stop.signal)
  await library.reload()
  expect(names()).toEqual([last])
  write(last, '/elsewhere')
  await until(() => library.matches('webhook', '/elsewhere'))
})

test('the watch finds a folder that is created later', async () => {
  rmSync(folder, { recursive: true })
  const watching = library.watch(stop.signal)
  await until(() => host.clock.sleeping > 0)
  write('late')
  const startMs = host.clock.nowMs()
  await until(() => names().length === 1)
  expect(host.clock.nowMs() - startMs).toBeLessThan(8000)
  write('late', '/again')
  await until(() => library.matches('webhook', '/again'))
  stop.abort()
  await watching
})

test('the watch follows the settings to another folder', async () => {
  write('a')
  void library.watch(stop.signal)
  await library.reload()
  folder = join(base, 'others')
  write('b')
  await library.reload()
  expect(names()).toEqual(['b'])
  await until(() => host.emitted.length === 3)
  write('c')
  await until(() => names().length === 2)
  expect(names()).toEqual(['b', 'c'])
})

test('the watch does not reload without a change', async () => {
  write('a')
  void library.watch(stop.signal)
  await library.reload()
  const endMs = host.clock.nowMs() + 40_000
  await until(() => host.clock.nowMs() > endMs)
  expect(host.emitted).toHaveLength(1)
})

test('loaded waits for the noticed changes only', async () => {
  void library.watch(stop.signal)
  await library.reload()
  await library.loaded()
  write('late')
  let isSettled = false
  await until(() => {
    // Asks again each time, because the change is noticed some time after it was made.
    void library.loaded().then(() => {
      isSettled = library.matches('webhook', '/late')
    })
    return isSettled
  })
  expect(names()).toEqual(['late'])
})

test('a refresh reloads only after the agreements have changed', async () => {
  const agreed = new Map<string, string>()
  const settings = () => ({ sources: [{ folder, isAgentWritable: true }] as const, defaultMode: 'auto' as const })
  library = new FolderLibrary({ settings, agreed: async () => new Map(agreed), clock: host.clock, log: host.log, events: host.events })
  write('theirs')
  await library.reload()
  expect([names(), library.waiting().length]).toEqual([[], 1])
  await library.refresh()
  expect(host.emitted).toHaveLength(1)
  agreed.set(join(folder, 'theirs'), library.waiting()[0]?.hash ?? '')
  await library.refresh()
  expect([names(), library.waiting(), host.emitted.length]).toEqual([['theirs'], [], 2])
})
