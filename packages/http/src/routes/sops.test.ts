/** The routes of procedures, their files, runs and audit log, with an engine that carries out nothing. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type LoadedConfig, parseConfig } from '@sluice/config'
import type { Role, SopSummary, Standing } from '@sluice/sdk'
import { sopRun, startOf, startRuns } from '@sluice/testkit/store-rules/sop-samples'
import { afterEach, describe, expect, test } from 'vitest'
import { testGateways } from '../testing.ts'

const gateway = testGateways()
const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

const TOML = '[sop]\nname = "deploy"\ndescription = "Deploys a release"\n[[triggers]]\ntype = "webhook"\npath = "/deploy"\n'
const STEPS = '## Steps\n\n1. **Build** - Build it.\n   - requires_confirmation: true\n'

const DEPLOY: SopSummary = {
  name: 'deploy',
  description: 'Deploys a release',
  version: '1',
  priority: 'normal',
  mode: 'auto',
  steps: 1,
  triggers: [],
  openTo: 'operator',
  activeRuns: 0,
}

async function arrange({ openTo = 'operator', role = 'operator' }: { readonly openTo?: Standing; readonly role?: Role } = {}) {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-sops-'))
  folders.push(dataDir)
  const [own, workspace] = [join(dataDir, 'sops'), join(dataDir, 'workspace', 'sops')]
  const write = (folder: string, name: string, toml = TOML, md = STEPS) => {
    mkdirSync(join(folder, name), { recursive: true })
    writeFileSync(join(folder, name, 'SOP.toml'), toml)
    writeFileSync(join(folder, name, 'SOP.md'), md)
  }
  const config: LoadedConfig = await parseConfig({ configFile: join(dataDir, 'config.toml'), dataDir, env: {}, features: [] }, '')
  const payloads: (string | null)[] = []
  let isLoaded = false
  const made = gateway({
    snapshot: { config },
    sopSettings: {
      sources: [
        { folder: own, isAgentWritable: false },
        { folder: workspace, isAgentWritable: true },
      ],
      defaultMode: 'auto',
    },
    sops: {
      loaded: async () => {
        isLoaded = true
      },
      list: () => (isLoaded ? [{ ...DEPLOY, openTo }] : []),
      run: async (_name, { payload }) => `run-${payloads.push(payload)}`,
      replay: async (runId, by) => `again-${runId}-${by.split(':')[0]}`,
    },
  })
  const { token } = await made.pair('test', null, role)
  const callAt = async (method: string, path: string, body?: unknown) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const response = await made.request(path, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  const call = (method: string, path: string, body?: unknown) => callAt(method, `/api/sops${path}`, body)
  return { ...made, call, callAt, write, own, workspace, payloads }
}

describe('the files of procedures', () => {
  test('are shown with the steps that wait', async () => {
    const { call, write, own } = await arrange()
    write(own, 'deploy')
    expect((await call('GET', '/deploy/definition')).body).toMatchObject({
      name: 'deploy',
      triggers: [{ type: 'webhook', path: '/deploy' }],
      steps: [{ number: 1, title: 'Build', waits: 'confirmation' }],
      folder: join(own, 'deploy'),
    })
    expect(await call('GET', '/deply/definition')).toMatchObject({
      status: 404,
      body: { error: expect.stringContaining('is it "deploy"?') },
    })
  })

  test('are listed with their problems', async () => {
    const { call, write, own, workspace } = await arrange()
    write(own, 'deploy')
    write(own, 'broken', TOML.replace('deploy', 'broken').replace('[[triggers]]', 'priority = "urgent"\n[[triggers]]'))
    write(workspace, 'new', TOML.replace('"deploy"', '"new"'))
    expect((await call('GET', '/problems')).body).toMatchObject({
      folder: own,
      editable: own,
      ok: false,
      loaded: 1,
      broken: 1,
      waiting: 1,
      problems: [{ file: join(own, 'broken', 'SOP.toml'), line: 4, severity: 'error' }],
    })
  })

  test('in the workspace are accepted by their hash and moved out of it', async () => {
    const { call, write, own, workspace, runtime, store } = await arrange()
    let reloads = 0
    runtime.procedures.onChange(async () => void reloads++)
    write(workspace, 'deploy')
    const { waiting } = (await call('GET', '/waiting')).body as { waiting: { hash: string }[] }
    expect(waiting).toMatchObject([{ folder: join(workspace, 'deploy'), changed: false, toml: TOML, md: STEPS }])
    const hash = waiting[0]?.hash ?? ''
    expect(await call('POST', '/waiting/deploy/accept', { hash: '0'.repeat(64) })).toMatchObject({
      status: 409,
      body: { code: 'conflict' },
    })
    for (const part of [hash.slice(0, 16), hash.slice(0, 63), `${hash}0`])
      expect(await call('POST', '/waiting/deploy/accept', { hash: part })).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
    expect(await call('POST', '/waiting/other/accept', { hash })).toMatchObject({ status: 404 })
    expect((await call('POST', '/adopt', {})).body).toEqual({ adopted: [], waiting: [join(workspace, 'deploy')] })
    expect((await call('POST', '/waiting/deploy/accept', { hash })).body).toEqual({ accepted: join(workspace, 'deploy'), hash })
    expect(reloads).toBe(1)
    expect((await call('GET', '/waiting')).body).toEqual({ waiting: [] })
    expect((await call('POST', '/adopt', { folder: 'deploy' })).body).toEqual({ adopted: [join(own, 'deploy')], waiting: [] })
    expect([readdirSync(own), readdirSync(workspace)]).toEqual([['deploy'], []])
    expect(reloads).toBe(2)
    const by = expect.stringMatching(/^device:/)
    expect(await store.sops.audit({ limit: 9 })).toMatchObject([
      { kind: 'procedure_accepted', by, detail: { folder: join(workspace, 'deploy'), hash } },
      { kind: 'procedures_adopted', by, detail: { folders: [join(own, 'deploy')] } },
    ])
  })

  test('are edited by an operator: checked, simulated as a draft, written at the version that was read, and recorded', async () => {
    const { call, callAt, write, own, store } = await arrange()
    write(own, 'deploy')
    const { version, toml, md } = (await callAt('GET', '/api/sop-files/deploy')).body as Record<'version' | 'toml' | 'md', string>
    expect(toml).toContain('name = "deploy"')
    const wrong = await callAt('POST', '/api/sop-files/deploy/check', { toml: toml.replace('description', 'descriptoin'), md })
    const message = expect.stringContaining('`sop.descriptoin` is not a known key')
    expect(wrong.body.problems).toContainEqual({ file: 'SOP.toml', line: 3, column: 1, message, severity: 'error' })
    const changed = { toml, md: md.replace('Build', 'Compile') }
    expect((await callAt('POST', '/api/sop-files/deploy/check', changed)).body).toEqual({ ok: true, name: 'deploy', problems: [] })
    expect((await callAt('POST', '/api/sop-files/other/check', changed)).body).toMatchObject({
      ok: false,
      problems: [{ severity: 'error', message: expect.stringContaining(join(own, 'deploy')) }],
    })
    const event = { source: 'webhook', topic: '/deploy', payload: {} }
    expect((await call('POST', '/simulate', { event, draft: { folder: 'deploy', ...changed } })).body).toMatchObject({
      procedures: [{ sop: 'deploy', steps: [{ title: 'Compile' }] }],
    })
    expect((await call('POST', '/simulate', { event, draft: { folder: 'deploy', toml: '', md } })).status).toBe(400)
    expect((await callAt('PUT', '/api/sop-files/deploy', { ...changed, version: null })).status).toBe(409)
    expect((await callAt('PUT', '/api/sop-files/deploy', { toml: 'x', md, version })).status).toBe(400)
    const written = await callAt('PUT', '/api/sop-files/deploy', { ...changed, version })
    expect(written).toMatchObject({ status: 200, body: { folder: 'deploy' } })
    expect(readFileSync(join(own, 'deploy/SOP.md'), 'utf8')).toBe(changed.md)
    expect((await callAt('PUT', '/api/sop-files/deploy', { ...changed, version })).status).toBe(409)
    expect(readdirSync(join(own, 'deploy')).sort()).toEqual(['SOP.md', 'SOP.toml'])
    const { version: hash } = written.body as { version: string }
    expect(await store.sops.audit({ limit: 9 })).toMatchObject([
      { kind: 'procedure_written', by: expect.stringMatching(/^device:/), detail: { folder: 'deploy', hash, before: version } },
    ])
  })

  test('are made in a folder that is not there, and never outside of the folder of procedures', async () => {
    const { callAt, own } = await arrange()
    const [toml, md] = [TOML.replace('"deploy"', '"made"'), STEPS]
    expect((await callAt('GET', '/api/sop-files/made')).body).toEqual({ toml: '', md: '', version: null, unreadable: [] })
    expect((await callAt('PUT', '/api/sop-files/made', { toml, md, version: null })).status).toBe(200)
    expect(readFileSync(join(own, 'made/SOP.toml'), 'utf8')).toBe(toml)
    for (const folder of ['..', '%2e%2e%2fx', '.hidden', 'a%2fb'])
      expect((await callAt('PUT', `/api/sop-files/${folder}`, { toml, md, version: null })).status, folder).toBeGreaterThanOrEqual(400)
    mkdirSync(join(own, '../elsewhere'))
    symlinkSync(join(own, '../elsewhere'), join(own, 'link'))
    expect((await callAt('PUT', '/api/sop-files/link', { toml: toml.replace('made', 'link'), md, version: null })).status).toBe(400)
    expect(readdirSync(join(own, '../elsewhere'))).toEqual([])
  })

  test('are simulated without a run', async () => {
    const { call, write, own, payloads } = await arrange()
    write(own, 'deploy')
    const event = { source: 'webhook', topic: '/deploy', payload: { release: 'v1' } }
    expect((await call('POST', '/simulate', { event })).body).toMatchObject({
      procedures: [{ sop: 'deploy', starts: true, steps: [{ title: 'Build', waits: 'confirmation', by: 'agent' }] }],
    })
    expect(await call('POST', '/simulate', { event, sop: 'other' })).toMatchObject({ status: 404 })
    expect(await call('POST', '/simulate', { event: {} })).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
    expect(payloads).toEqual([])
  })
})

test('the list waits for noticed changes, and counts the runs in the store', async () => {
  const { call, store } = await arrange()
  await startRuns(store, ['a', 'b'], { sop: 'deploy' })
  expect((await call('GET', '')).body).toMatchObject({ sops: [{ name: 'deploy', active_runs: 2 }] })
})

describe('runs', () => {
  test('that a limit holds back say so, are counted and listed, and can be replayed once expired', async () => {
    const { call, store } = await arrange()
    const held = (id: string) => startOf(sopRun(id), { concurrentMax: 1, waitingMax: 1 })
    await store.sops.start([held('run-0'), held('run-1')], { atMs: 1_000 })
    expect((await call('POST', '/deploy/runs', { payload: 1 })).body).toEqual({
      run_id: 'run-1',
      status: 'waiting',
      reason: 'too many runs of this procedure (max_concurrent = 1)',
    })
    expect((await call('GET', '')).body).toMatchObject({ sops: [{ name: 'deploy', active_runs: 1, waiting_runs: 1 }] })
    expect((await call('GET', '/runs?status=waiting')).body).toMatchObject({ runs: [{ run_id: 'run-1', status: 'waiting' }] })
    expect(await call('POST', '/runs/run-1/replay')).toEqual({
      status: 200,
      body: { run_id: 'again-run-1-device', status: 'started', reason: null },
    })
  })

  test('start with any JSON value or with a text as payload', async () => {
    const { call, payloads } = await arrange()
    const start = (body: object) => call('POST', '/deploy/runs', body)
    expect((await start({ payload: { a: [1] } })).body).toEqual({ status: 'started', reason: null, run_id: 'run-1' })
    await start({ payload_text: 'not JSON' })
    await start({ payload_text: '\u0001'.repeat(64 * 1024) })
    await start({})
    expect(payloads).toEqual(['{"a":[1]}', 'not JSON', '\u0001'.repeat(64 * 1024), null])
    expect(await start({ payload_text: 'x'.repeat(64 * 1024 + 1) })).toMatchObject({ status: 413, body: { code: 'too_large' } })
  })

  test('are started by a client only where a manual trigger is open to clients', async () => {
    const closed = await arrange({ role: 'client' })
    for (const name of ['deploy', 'no-such']) expect(await closed.call('POST', `/${name}/runs`, {})).toMatchObject({ status: 403 })
    expect(closed.payloads).toEqual([])
    const open = await arrange({ role: 'client', openTo: 'client' })
    expect(await open.call('POST', '/deploy/runs', {})).toMatchObject({ status: 200, body: { run_id: 'run-1' } })
  })

  test('are shown to operators and to the device that started them', async () => {
    const { request, pair, store, runtime } = await arrange()
    const people = { operator: await pair('o'), starter: await pair('c', null, 'client'), other: await pair('x', null, 'client') }
    const { event } = sopRun('r')
    const starter = `device:${people.starter.device}`
    await startRuns(store, ['own'], { event: { ...event, starter, standing: 'client', payload: 'canary' } })
    await startRuns(store, ['events', 'old'], { event: { ...event, by: starter } })
    const gate = {
      gate: 'sop',
      stepId: 'step-1',
      workflow: 'deploy',
      title: 't',
      message: 'canary',
      timeoutSecs: 0,
      decider: 'operator',
    } as const
    await runtime.approvals.open({ ...gate, runId: 'own', owner: people.starter.device })
    await runtime.approvals.open({ ...gate, runId: 'events' })
    const as = async (who: keyof typeof people, path: string, body?: object) => {
      const headers = { authorization: `Bearer ${people[who].token}`, 'content-type': 'application/json' }
      const answer = await request(path, { headers, ...(body && { method: 'POST', body: JSON.stringify(body) }) })
      return { status: answer.status, text: await answer.text() }
    }
    const seen = async (who: keyof typeof people) => {
      const ids = JSON.parse((await as(who, '/api/sops/runs')).text).runs.map(({ run_id }: { run_id: string }) => run_id)
      const asked = JSON.parse((await as(who, '/api/approvals')).text).approvals.map(({ run_id }: { run_id: string }) => run_id)
      const single = ['own', 'events', 'old'].map(async (id) => (await as(who, `/api/sops/runs/${id}`)).status)
      return { ids, asked, single: await Promise.all(single) }
    }
    expect(await seen('operator')).toEqual({ ids: ['old', 'events', 'own'], asked: ['events', 'own'], single: [200, 200, 200] })
    expect(await seen('starter')).toEqual({ ids: ['own'], asked: ['own'], single: [200, 404, 404] })
    expect(await seen('other')).toEqual({ ids: [], asked: [], single: [404, 404, 404] })
    const history = async (who: keyof typeof people) => (await as(who, '/api/events/history')).text.match(/canary/g)?.length ?? 0
    expect([await history('operator'), await history('starter'), await history('other')]).toEqual([2, 1, 0])
    const decide = async (who: keyof typeof people) => (await as(who, '/api/approvals/own/step-1', { approved: true })).status
    expect([await decide('other'), await decide('starter'), await decide('operator')]).toEqual([404, 403, 200])
    expect((await as('starter', '/api/sops/runs/own/cancel', {})).status).toBe(403)
  })

  test('and audit records are listed page by page, and the log is verified', async () => {
    const { call, store } = await arrange()
    await startRuns(store, ['a', 'b', 'c', 'd', 'e'])
    const pages = async (path: string, members: string, param: string) => {
      const found: unknown[][] = []
      for (let next: unknown = ''; next !== null; ) {
        const { body } = await call('GET', `${path}?limit=2${next === '' ? '' : `&${param}=${next}`}`)
        found.push(body[members] as unknown[])
        next = body.next
      }
      return found
    }
    const runs = await pages('/runs', 'runs', 'before')
    expect(runs.map((page) => page.length)).toEqual([2, 2, 1])
    expect(new Set(runs.flat().map((run) => (run as { run_id: string }).run_id)).size).toBe(5)
    const { records } = (await call('GET', '/audit/verify')).body as { records: number }
    expect(records).toBeGreaterThan(0)
    expect((await pages('/audit', 'records', 'after')).flat()).toHaveLength(records)
    expect((await call('GET', '/audit/verify')).body).toMatchObject({
      ok: true,
      broken: null,
      head: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
  })
})
