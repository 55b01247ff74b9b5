import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseConfig } from '@sluice/config'
import offline from '@sluice/provider-offline'
import { sopSettings } from '@sluice/runtime'
import { type Channel, chatSessionKey, type SopRun, type Store } from '@sluice/sdk'
import { createAgreements } from '@sluice/sop'
import { loadSops } from '@sluice/sop/load-sops'
import { openStore } from '@sluice/store'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Procedures, startProcedures } from './procedures.ts'
import { type OpenRuntime, openRuntime } from './runtime/open-runtime.ts'

let folder: string
const open: { runtime: OpenRuntime; procedures: Procedures }[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'procedures-'))
})
afterEach(async () => {
  for (const each of open.splice(0)) await stop(each)
  rmSync(folder, { recursive: true })
})

const stop = async ({ runtime, procedures }: (typeof open)[number]): Promise<void> => {
  await procedures.stop(0)
  await runtime.close(0)
}

/** A procedure that never passes its one checkpoint, so that its run stays in its first state. */
function sop(name: string, triggers: string, home = 'sops'): void {
  const dir = join(folder, home, name)
  mkdirSync(dir, { recursive: true })
  writeFileSync(join(dir, 'SOP.toml'), `[sop]\nname = "${name}"\ndescription = "x"\nmax_concurrent = 9\n${triggers}`)
  writeFileSync(join(dir, 'SOP.md'), '## Steps\n\n1. **Wait**\n   - kind: checkpoint\n')
}

const cron = (expression: string, timezone = 'UTC'): string =>
  `[[triggers]]\ntype = "cron"\nexpression = "${expression}"\ntimezone = "${timezone}"\n`

async function start(clock: TestClock) {
  writeFileSync(join(folder, 'config.toml'), '[sop]\nmax_concurrent_total = 100\n')
  const runtime = await openRuntime({
    features: [offline],
    configFile: join(folder, 'config.toml'),
    dataDir: folder,
    env: {},
    profile: 'test',
    version: '0.0.0',
    quiet: true,
    clock,
  })
  await runtime.ownership.start()
  await runtime.approvals.start()
  const started = { runtime, procedures: await startProcedures(runtime) }
  open.push(started)
  const runs = async (): Promise<SopRun[]> => (await runtime.store.sops.runs({ limit: 100 })).toReversed()
  return { ...started, runs }
}

const at = (iso: string): number => Date.parse(iso)
const startedBy = (run: SopRun) => [
  run.sop,
  JSON.parse(run.event.payload ?? '{}').scheduled_at,
  JSON.parse(run.event.payload ?? '{}').missed,
]

describe('procedures with cron triggers', () => {
  test('start at the hour of their own time zone', async () => {
    sop('in-berlin', cron('0 7 * * *', 'Europe/Berlin'))
    sop('in-utc', cron('0 7 * * *'))
    const clock = testClock(at('2026-07-01T00:00:00Z'))
    const { runs } = await start(clock)
    await clock.advance(5.5 * 3_600_000)
    await expect.poll(async () => (await runs()).map(startedBy)).toEqual([['in-berlin', '2026-07-01T05:00:00.000Z', 0]])
    await clock.advance(2 * 3_600_000)
    await expect.poll(async () => (await runs()).map(startedBy).at(-1)).toEqual(['in-utc', '2026-07-01T07:00:00.000Z', 0])
    expect(await runs()).toHaveLength(2)
  })

  test('start once for an instant that two of their expressions name', async () => {
    sop('twice', cron('0 7 * * *') + cron('*/30 7 * * *'))
    sop('once', cron('0 7 * * *'))
    const clock = testClock(at('2026-07-01T06:59:00Z'))
    const { runs } = await start(clock)
    await clock.advance(2 * 60_000)
    await expect.poll(() => runs()).toHaveLength(2)
    expect((await runs()).map(({ sop }) => sop).toSorted()).toEqual(['once', 'twice'])
  })

  test('start once for the instants missed while the daemon was down', async () => {
    sop('hourly', cron('0 * * * *'))
    const first = await start(testClock(at('2026-07-01T00:30:00Z')))
    await expect.poll(() => first.runtime.store.keyValue('sop').get('cron')).toBeTypeOf('number')
    await stop(open.splice(0)[0] ?? expect.fail('it runs'))
    const clock = testClock(at('2026-07-01T05:10:00Z'))
    const second = await start(clock)
    await expect.poll(async () => (await second.runs()).map(startedBy)).toEqual([['hourly', '2026-07-01T05:00:00.000Z', 4]])
    await clock.advance(30 * 60_000)
    expect(await second.runs()).toHaveLength(1)
  })

  test('start no run twice after a crash that lost the time of the last look', async () => {
    sop('hourly', cron('0 * * * *'))
    const clock = testClock(at('2026-07-01T00:30:00Z'))
    const first = await start(clock)
    const cursor = first.runtime.store.keyValue('sop')
    await expect.poll(() => cursor.get('cron')).toBeTypeOf('number')
    const before = await cursor.get('cron')
    await clock.advance(3_600_000)
    await expect.poll(() => cursor.get('cron')).not.toBe(before)
    await cursor.set('cron', before ?? expect.fail('it is kept'))
    await stop(open.splice(0)[0] ?? expect.fail('it runs'))
    const second = await start(testClock(at('2026-07-01T01:40:00Z')))
    const kept = second.runtime.store.keyValue('sop')
    await expect.poll(() => kept.get('cron')).not.toBe(before)
    expect((await second.runs()).map(startedBy)).toEqual([['hourly', '2026-07-01T01:00:00.000Z', 0]])
  })

  test('start no run twice when the clock is set back', async () => {
    sop('hourly', cron('0 * * * *'))
    const clock = testClock(at('2026-07-01T02:30:00Z'))
    const first = await start(clock)
    await clock.advance(3_600_000)
    await expect.poll(() => first.runs()).toHaveLength(1)
    await stop(open.splice(0)[0] ?? expect.fail('it runs'))
    const earlier = testClock(at('2026-07-01T02:31:00Z'))
    const second = await start(earlier)
    await earlier.advance(3_600_000)
    expect(await second.runs()).toHaveLength(1)
  })
})

test('a definition that is added while the daemon runs is loaded', async () => {
  sop('first', '[[triggers]]\ntype = "webhook"\npath = "/first"\n')
  const clock = testClock(at('2026-07-01T00:00:00Z'))
  const { runtime } = await start(clock)
  expect(runtime.sops()?.matches('webhook', '/first')).toBe(true)
  sop('second', '[[triggers]]\ntype = "webhook"\npath = "/second"\n')
  await vi.waitFor(
    async () => {
      await clock.advance(1000)
      expect(runtime.sops()?.matches('webhook', '/second')).toBe(true)
    },
    { timeout: 20_000 },
  )
})

test('a changed sops_dir loads the procedures of the new folder', async () => {
  sop('elsewhere', '[[triggers]]\ntype = "webhook"\npath = "/elsewhere"\n', 'other')
  const { runtime } = await start(testClock(at('2026-07-01T00:00:00Z')))
  expect(runtime.sops()?.matches('webhook', '/elsewhere')).toBe(false)
  await runtime.reload(`[sop]\nsops_dir = "${join(folder, 'other')}"\n`)
  await expect.poll(() => runtime.sops()?.matches('webhook', '/elsewhere')).toBe(true)
})

test('the approval of a run that was cancelled while no daemon ran is withdrawn', async () => {
  sop('waits', cron('0 * * * *'))
  const clock = testClock(at('2026-07-01T00:59:00Z'))
  const first = await start(clock)
  await clock.advance(60_000)
  const approvalStates = async ({ store }: OpenRuntime) => (await store.approvals.list({ limit: 10 })).map(({ state }) => state)
  await expect.poll(() => approvalStates(first.runtime)).toEqual(['pending'])
  await first.procedures.stop(0)
  const [run = expect.fail('it was started')] = await first.runs()
  const cancelled: SopRun = { ...run, status: 'cancelled', gate: null, endedAtMs: clock.nowMs(), reason: 'enough' }
  expect(await first.runtime.store.sops.advance(run, cancelled, [])).toEqual([])
  await stop(open.splice(0)[0] ?? expect.fail('it runs'))
  const second = await start(testClock(at('2026-07-01T01:01:00Z')))
  expect(await approvalStates(second.runtime)).toEqual(['cancelled'])
})

describe('procedures in the workspace', () => {
  const webhook = (path: string): string => `[[triggers]]\ntype = "webhook"\npath = "${path}"\n`
  const loaded = ({ runtime }: (typeof open)[number]): string[] => (runtime.sops()?.list() ?? []).map(({ name }) => name)
  const agreements = (store: Store) => createAgreements(store.keyValue('sop'))

  test('are loaded once an operator agrees, and wait again after a change', async () => {
    sop('mine', webhook('/mine'))
    sop('theirs', webhook('/theirs'), 'workspace/sops')
    const started = await start(testClock(0))
    expect(loaded(started)).toEqual(['mine'])
    const { sources, defaultMode } = sopSettings(started.runtime.config(), folder)
    const read = async () => (await loadSops({ sources, defaultMode, agreed: new Map(), nowMs: 0 })).waiting[0] ?? expect.fail()
    const { folder: at, hash } = await read()
    await agreements(started.runtime.store).agree(at, hash)
    await started.procedures.look({ shards: null })
    expect(loaded(started)).toEqual(['mine', 'theirs'])

    sop('theirs', webhook('/webhooks'), 'workspace/sops')
    await agreements(started.runtime.store).agree('/elsewhere', hash)
    await started.procedures.look({ shards: null })
    expect(loaded(started)).toEqual(['mine'])
  })

  test('keep running after an upgrade from a release without agreements', async () => {
    const store = openStore({ file: join(folder, 'sluice.db'), clock: testClock(0), log: testHost().log })
    await store.keyValue('sop').set('agree_to_workspace', true)
    await store.close()
    sop('old', webhook('/old'), 'workspace/sops')
    expect(loaded(await start(testClock(0)))).toEqual(['old'])
    await stop(open.splice(0)[0] ?? expect.fail('it runs'))
    sop('new', webhook('/new'), 'workspace/sops')
    sop('old', webhook('/changed'), 'workspace/sops')
    expect(loaded(await start(testClock(0)))).toEqual([])
  })

  test('also wait where sops_dir is a folder in the workspace or a link to one', async () => {
    sop('theirs', webhook('/theirs'), 'workspace/here')
    symlinkSync(join(folder, 'workspace/here'), join(folder, 'link'))
    for (const sops_dir of [join(folder, 'workspace/here'), join(folder, 'link')]) {
      const config = await parseConfig(
        { configFile: join(folder, 'config.toml'), dataDir: folder, env: {}, features: [offline] },
        `[sop]\nsops_dir = "${sops_dir}"\n`,
      )
      expect(sopSettings(config, folder).sources[0], sops_dir).toEqual({ folder: sops_dir, isAgentWritable: true })
    }
  })
})

test('the person whose message or turn started a run is told of its end, also when a crash follows at once', async () => {
  sop('ask', '[[triggers]]\ntype = "webhook"\npath = "/chat"\nrole = "stranger"\n')
  const clock = testClock(at('2026-07-01T00:30:00Z'))
  const { runtime, runs } = await start(clock)
  const channel: Channel = { name: 'chat', allow: ['*'], limits: { text: 100, unit: 'utf16' }, send: async () => ({ id: '1' }) }
  vi.spyOn(runtime, 'snapshot').mockReturnValue({ ...runtime.snapshot(), channels: [channel] })
  const origin = { channel: 'chat', account: '', to: { to: 'anna' }, sender: 'anna' }
  const event = { source: 'webhook', topic: '/chat', payload: null, atMs: clock.nowMs(), by: 'chat:anna', standing: 'stranger' } as const
  const sops = runtime.sops() ?? expect.fail('it runs')
  await sops.fire({ ...event, origin })
  await sops.fire(event)
  const session = chatSessionKey({ channel: 'chat', account: '', conversation: 'room' })
  await sops.run('ask', { payload: null, atMs: clock.nowMs(), by: 'turn:t', standing: 'stranger', session })
  // A crash right after the commit: nothing that follows from its event happens.
  vi.spyOn(runtime.bus, 'emit').mockImplementation(() => {})
  for (const { id } of await runs()) await sops.cancel(id, 'cli:operator', 'enough')
  const queued = await runtime.store.outbox.list({ limit: 9 })
  expect(queued.toSorted((one, other) => one.to.to.localeCompare(other.to.to))).toMatchObject([
    { channel: 'chat', to: { to: 'anna' }, text: 'This message could not be answered.', state: 'queued' },
    { channel: 'chat', to: { to: 'room' }, text: 'The procedure ask, which was started here, was not completed.', state: 'queued' },
  ])
})
