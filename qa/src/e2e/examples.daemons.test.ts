/** Runs the procedures of `examples/sops` in a daemon: with real events, answers of people, and files as results. */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Daemon, type DaemonOptions, startDaemon } from '@sluice/daemon'
import type { SopRun } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { type ModelServer, startModelServer } from '@sluice/testkit/model-server'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { always } from '../../../profiles/always.ts'
import { post, ROOT } from '../daemons/bundle.ts'
import { sluiceWith } from '../daemons/run-command.ts'
import { findMosquitto, type Mosquitto, startMosquitto } from '../mosquitto.ts'
import { mqttPublish } from '../mqtt-publish.ts'

const EXAMPLES = join(ROOT, 'examples/sops')
const SOON = { timeout: 20_000, interval: 10 }

let dataDir: string
let daemon: Daemon | undefined
const closing: (() => Promise<void>)[] = []
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'sluice-examples-'))
})
afterEach(async () => {
  await daemon?.stop()
  daemon = undefined
  for (const close of closing.splice(0)) await close()
  rmSync(dataDir, { recursive: true, force: true })
})

const inWorkspace = (path: string): string => join(dataDir, 'workspace', path)
const written = (path: string): string | undefined => (existsSync(inWorkspace(path)) ? readFileSync(inWorkspace(path), 'utf8') : undefined)
const write = (path: string, text: string): void => {
  mkdirSync(dirname(inWorkspace(path)), { recursive: true })
  writeFileSync(inWorkspace(path), text)
}

/** Starts a daemon with one of the examples. */
async function start(example: string, config: string, clock: Pick<DaemonOptions, 'clock'> = {}): Promise<Daemon> {
  cpSync(join(EXAMPLES, example), join(dataDir, 'sops', example), { recursive: true })
  const configFile = join(dataDir, 'config.toml')
  writeFileSync(configFile, `[log]\nlevel = "error"\n[gateway]\nrequire_pairing = false\n${config}`, { mode: 0o600 })
  daemon = await startDaemon({ features: always, dataDir, configFile, env: {}, profile: 'test', version: '0.0.0', port: 0, ...clock })
  return daemon
}

const OFFLINE = '[provider]\nkind = "offline"\n'
const runs = async ({ runtime }: Daemon): Promise<readonly SopRun[]> => (await runtime.store.sops.runs({ limit: 10 })).toReversed()
/** Resolves to the newest run, once it has this status. */
const runWith = (running: Daemon, status: SopRun['status']): Promise<SopRun> =>
  vi.waitFor(async () => {
    const run = (await runs(running)).at(-1)
    expect(run).toMatchObject({ status })
    return run ?? expect.fail('The store has no run.')
  }, SOON)
/** Resolves to the run that waits for a person, once the approval exists. */
const waitingRun = async (running: Daemon): Promise<SopRun & { readonly question: string }> => {
  const run = await runWith(running, 'paused_checkpoint')
  const key = { runId: run.id, stepId: run.gate?.stepId ?? '' }
  const question = await vi.waitFor(async () => (await running.runtime.approvals.get(key)) ?? expect.fail('The run has no approval.'), SOON)
  return { ...run, question: question.message }
}
const answer = ({ url }: Daemon, { id, gate }: SopRun, approved: boolean) =>
  post(`${url}/api/approvals/${id}/${gate?.stepId}`, { approved })
const recorded = async ({ runtime }: Daemon): Promise<readonly string[]> => {
  expect(await runtime.store.sops.verify()).toMatchObject({ broken: null })
  return (await runtime.store.sops.audit({ limit: 100 })).map(({ kind, step }) => (step === null ? kind : `${kind} ${step}`))
}

describe('deploy-with-approval', () => {
  test('puts a release live only after approval', async () => {
    const running = await start('deploy-with-approval', OFFLINE)
    const { body } = await post(`${running.url}/deploy`, { release: 'v1.4.0' })
    expect(body).toMatchObject({ status: 'accepted', path: '/deploy', results: [{ sop: 'deploy-with-approval', status: 'started' }] })
    const run = await waitingRun(running)
    expect(written('releases/requested.txt')).toBe('v1.4.0')
    expect(written('releases/live.txt')).toBeUndefined()
    expect(run.question).toContain('v1.4.0')
    expect(await answer(running, run, true)).toMatchObject({ status: 200, body: { approved: true } })
    await runWith(running, 'completed')
    expect(written('releases/live.txt')).toBe('v1.4.0')
    expect(await recorded(running)).toEqual([
      'run_started',
      ...['step_started 1', 'step_completed 1'],
      ...['approval_requested 2', 'approved 2', 'step_completed 2'],
      ...['step_started 3', 'step_completed 3'],
      'run_completed',
    ])
  })

  test('does not put a rejected release live', async () => {
    const running = await start('deploy-with-approval', OFFLINE)
    await post(`${running.url}/deploy`, { release: 'v1.4.0' })
    await answer(running, await waitingRun(running), false)
    await runWith(running, 'cancelled')
    expect(written('releases/live.txt')).toBeUndefined()
  })

  test('ignores an event without a release', async () => {
    const running = await start('deploy-with-approval', OFFLINE)
    expect(await post(`${running.url}/deploy`, { release: '' })).toMatchObject({ status: 200, body: { results: [] } })
    expect(await runs(running)).toEqual([])
  })
})

const program = await findMosquitto()
const why = 'missing' in program ? ` (skipped: ${program.missing})` : ''

describe.skipIf('missing' in program)(`alert-from-broker${why}`, () => {
  test('stores an alarm and waits for a person; a second alarm is skipped meanwhile', async () => {
    const broker = await startBroker()
    const running = await start('alert-from-broker', `${OFFLINE}[channels_config.mqtt]\nenabled = true\nbroker_url = "${broker.url}"\n`)
    const send = (pump: string, event: object) => mqttPublish(broker.port, `plant/${pump}/temperature`, JSON.stringify(event))
    await expect.poll(() => broker.log(), SOON).toContain('SUBSCRIBE')
    await send('pump-3', { celsius: 20, text: 'Pump 3 is at 20 degrees' })
    await send('pump-3', { celsius: 91, text: 'Pump 3 is at 91 degrees' })
    const run = await waitingRun(running)
    expect(written('alarms/newest.txt')).toBe('Pump 3 is at 91 degrees')
    await send('pump-4', { celsius: 95, text: 'Pump 4 is at 95 degrees' })
    await expect.poll(() => recorded(running), SOON).toContain('trigger_skipped')
    await answer(running, run, true)
    expect(await runWith(running, 'completed')).toMatchObject({ results: [{}, {}, { output: expect.stringContaining('91 degrees') }] })
    expect(await runs(running)).toHaveLength(1)
  })
})

async function startBroker(): Promise<Mosquitto> {
  if ('missing' in program) throw new Error(program.missing)
  const broker = await startMosquitto(program, { lines: ['log_type all'] })
  closing.push(() => broker.dispose())
  return broker
}

describe('daily-digest', () => {
  const model = async (): Promise<ModelServer> => {
    const server = await startModelServer()
    closing.push(() => server.close())
    server.script(
      {
        toolCalls: [
          { name: 'file_list', input: { path: 'notes' } },
          { name: 'file_read', input: { path: 'notes/plant.md' } },
        ],
      },
      { text: 'Pump 3 was repaired.' },
      { toolCalls: [{ name: 'file_write', input: { path: 'digests/today.md', content: 'One repair: pump 3.' } }] },
      { text: 'The digest is written.' },
    )
    return server
  }
  const begin = async (iso: string) => {
    write('notes/plant.md', 'Pump 3 was repaired at noon.')
    const clock = testClock(Date.parse(iso))
    const server = await model()
    const provider = `[provider]\nkind = "openai"\nbase_url = "${server.url}/v1"\napi_key = "${server.apiKey}"\nmodel = "test"\n`
    const running = await start('daily-digest', provider, { clock })
    // The schedule stores the last instant that it handled.
    await expect.poll(() => running.runtime.store.keyValue('sop').get('cron'), SOON).toBeTypeOf('number')
    return { clock, server, running }
  }

  test.each([
    ['summer', '2026-07-06T04:59:00Z', '2026-07-06T05:00:00.000Z'],
    ['winter', '2026-01-05T05:59:00Z', '2026-01-05T06:00:00.000Z'],
  ])('writes the digest at seven in Berlin on a working day in %s', async (_season, before, at) => {
    const { clock, server, running } = await begin(before)
    await clock.advance(60_000)
    const run = await runWith(running, 'completed')
    expect(run.event).toMatchObject({ source: 'cron', payload: JSON.stringify({ scheduled_at: at, missed: 0 }) })
    expect(run.results).toMatchObject([{ output: 'Pump 3 was repaired.' }, { output: 'The digest is written.' }])
    expect(written('digests/today.md')).toBe('One repair: pump 3.')
    expect(server.requests.map(({ refused }) => refused)).toEqual([null, null, null, null])
    expect(server.requests[2]?.lastUserText).toContain('Pump 3 was repaired.')
    expect(toolsOf(server.requests[0]?.body)).toEqual(['file_list', 'file_read', 'sop_advance', 'sop_status'])
    expect(toolsOf(server.requests[2]?.body)).toEqual(['file_write', 'sop_advance', 'sop_status'])
  })

  test.each(['2026-07-04T04:59:00Z', '2026-07-05T04:59:00Z'])('runs on a weekend only by hand: %s', async (before) => {
    const { clock, running } = await begin(before)
    await clock.advance(120_000)
    await post(`${running.url}/api/sops/daily-digest/runs`, {})
    await runWith(running, 'completed')
    expect(await runs(running)).toMatchObject([{ event: { source: 'manual' } }])
    expect(written('digests/today.md')).toBe('One repair: pump 3.')
  })
})

const toolsOf = (body: unknown): string[] =>
  (body as { readonly tools: readonly { readonly function: { readonly name: string } }[] }).tools
    .map((tool) => tool.function.name)
    .toSorted()

test('every example is valid and tested in this file', async () => {
  writeFileSync(join(dataDir, 'config.toml'), `[sop]\nsops_dir = "${EXAMPLES}"\n`)
  const { code, out } = await sluiceWith(always)('sop', 'validate', '--json', '--data-dir', dataDir)
  expect(JSON.parse(out)).toMatchObject({ ok: true, broken: 0, problems: [], loaded: readdirSync(EXAMPLES).length })
  expect(code).toBe(0)
  expect(readdirSync(EXAMPLES).toSorted()).toEqual(['alert-from-broker', 'daily-digest', 'deploy-with-approval'])
})
