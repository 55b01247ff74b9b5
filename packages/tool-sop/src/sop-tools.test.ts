import type { SopRun, SopSummary, Sops, Standing } from '@sluice/sdk'
import { AppError } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { toolConformance, toolContext } from '@sluice/testkit/tool'
import { describe, expect, test } from 'vitest'
import feature from './index.ts'

const RUN: SopRun = {
  id: 'run-1',
  sop: 'deploy',
  version: '1.0.0',
  description: 'Ships it',
  priority: 'normal',
  mode: 'supervised',
  steps: [
    { number: 1, title: 'Build', body: '', tools: null, requiresConfirmation: false, kind: 'execute', input: null, output: null },
    { number: 2, title: 'Ship', body: '', tools: ['shell'], requiresConfirmation: true, kind: 'execute', input: null, output: null },
  ],
  event: { source: 'manual', topic: 'deploy', payload: 'canary', atMs: 0, by: 'turn:turn', starter: 'device:d1', standing: 'client' },
  status: 'waiting_approval',
  step: 2,
  gate: { stepId: 'step-2', sinceMs: 5000, why: 'confirmation' },
  gates: 1,
  attempt: null,
  report: null,
  results: [{ step: 1, status: 'completed', output: 'built', startedAtMs: 1000, endedAtMs: 2000 }],
  startedAtMs: 0,
  endedAtMs: null,
  reason: null,
}

const OF_SUPPORT: SopRun = { ...RUN, id: 'run-2', sop: 'help', agent: 'support' }

function engine() {
  const calls: unknown[][] = []
  const sops: Pick<Sops, 'loaded' | 'list' | 'run' | 'get' | 'runs' | 'report' | 'approve'> = {
    loaded: async () => {},
    list: () => [
      {
        name: 'help',
        agent: 'support',
        description: 'Answers',
        version: '1',
        priority: 'low',
        mode: 'auto',
        steps: 1,
        triggers: [],
        openTo: 'operator',
        activeRuns: 0,
      },
      {
        name: 'deploy',
        description: 'Ships it',
        version: '1',
        priority: 'high',
        mode: 'auto',
        steps: 2,
        triggers: ['webhook:/deploy'],
        openTo: 'operator',
        activeRuns: 1,
      },
      {
        name: 'digest',
        description: 'Sums up',
        version: '1',
        priority: 'low',
        mode: 'auto',
        steps: 1,
        triggers: [],
        openTo: 'operator',
        activeRuns: 0,
      },
    ],
    async run(...given) {
      calls.push(given)
      return RUN.id
    },
    get: async (id) => [RUN, OF_SUPPORT].find((run) => run.id === id),
    runs: async ({ starter }) => [OF_SUPPORT, RUN].filter(({ event }) => starter === undefined || event.starter === starter),
    async report(...given) {
      calls.push(given)
      if (given[0] !== RUN.id) throw new AppError('not_found', 'There is no such run')
      return RUN
    },
    async approve(...given) {
      calls.push(given)
      return { ...RUN, status: 'running', gate: null }
    },
  }
  return { calls, sops: sops as Sops, host: testHost({ services: { sops: sops as Sops } }) }
}

toolConformance({
  feature,
  host: () => ({ services: { sops: engine().sops } }),
  examples: [
    { tool: 'sop_list', input: {} },
    { tool: 'sop_execute', input: { name: 'deploy' } },
    { tool: 'sop_status', input: { run_id: 'run-1' } },
    { tool: 'sop_approve', input: { run_id: 'run-1' } },
    { tool: 'sop_advance', input: { run_id: 'run-1', status: 'completed', output: 'done' } },
  ],
})

const toolNamed = (host: ReturnType<typeof testHost>, name: string) =>
  feature.build(host, {}).tools?.find((tool) => tool.name === name) ?? expect.fail(`no ${name}`)

test.each([
  ['main', 'run-1', 'deploy', 'run-2', 'help'],
  ['support', 'run-2', 'help', 'run-1', 'deploy'],
])('the agent %s reaches only its own procedures and runs', async (agent, own, sop, other, otherSop) => {
  const { host, calls } = engine()
  const context = { ...toolContext(), agent, approvedBy: 'telegram:7' }
  const call = (name: string, input: object) => toolNamed(host, name).run(input, context)
  expect(await call('sop_list', { filter: '' })).toContain(`\n${sop} (`)
  expect(await call('sop_list', { filter: '' })).not.toContain(`\n${otherSop} (`)
  expect(await call('sop_status', {})).toMatch(/^run-\d: [^\n]*$/)
  expect(await call('sop_status', { run_id: own })).toContain('built')
  await expect(call('sop_status', { run_id: other })).rejects.toMatchObject({ code: 'not_found' })
  await expect(call('sop_approve', { run_id: other })).rejects.toMatchObject({ code: 'not_found' })
  await expect(call('sop_execute', { name: otherSop })).rejects.toMatchObject({ code: 'forbidden' })
  expect(calls).toEqual([])
  await call('sop_execute', { name: sop })
  expect(calls).toHaveLength(1)
})

describe('who may see and decide', () => {
  test('a room sees the runs that were started there, and a further one if an operator names it', async () => {
    const room = {
      ...toolContext(),
      session: 'channel:slack/T1/C1/',
      isInRoom: true as const,
      standing: 'client' as const,
      caller: 'device:d1',
    }
    const to = { to: 'C1' }
    const origin = { channel: 'slack', account: 'T1', to }
    const elsewhere: Partial<SopRun['event']>[] = [
      {},
      { session: 'channel:slack/T1/D9/ann' },
      { origin: { ...origin, to: { ...to, thread: '7' } } },
    ]
    const here: typeof elsewhere = [{ session: room.session }, { origin }]
    for (const event of [...elsewhere, ...here]) {
      const { host, sops } = engine()
      const run = { ...RUN, event: { ...RUN.event, ...event } }
      Object.assign(sops, { runs: async () => [run], get: async () => run, approve: async () => run })
      const status = toolNamed(host, 'sop_status')
      const byId = (by: object) => Promise.resolve(status.run({ run_id: RUN.id }, { ...room, ...by }))
      if (elsewhere.includes(event)) await expect(byId({})).rejects.toMatchObject({ code: 'not_found' })
      else await expect(byId({})).resolves.toContain('built')
      const approving = { ...room, approvedBy: 'device:o' }
      const approved = String(await toolNamed(host, 'sop_approve').run({ run_id: RUN.id }, approving))
      expect(approved.includes('built')).toBe(here.includes(event))
      await expect(byId({ standing: 'operator' })).resolves.toContain('built')
      for (const standing of ['client', 'operator'] as const)
        expect((await status.run({}, { ...room, standing })).includes(RUN.id)).toBe(here.includes(event))
    }
  })

  test('a run has the session of the call that starts it', async () => {
    const { host, calls } = engine()
    await toolNamed(host, 'sop_execute').run({ name: 'deploy' }, { ...toolContext(), session: 'ann/s' })
    expect(calls).toMatchObject([['deploy', { session: 'ann/s' }]])
  })

  const PEOPLE: readonly (readonly [standing: Standing, caller: string, sees: boolean])[] = [
    ['operator', 'cli', true],
    ['client', 'device:d1', true],
    ['client', 'device:d2', false],
    ['listed', 'plain:ann', false],
    ['stranger', 'plain:eve', false],
    ['unverified', 'device:d1', false],
  ]

  test.each(PEOPLE)('a turn of the standing %s of %s sees the run: %s', async (standing, caller, sees) => {
    const { host } = engine()
    const context = { ...toolContext(), standing, caller }
    const status = toolNamed(host, 'sop_status')
    const approve = toolNamed(host, 'sop_approve')
    expect((await status.run({}, context)).includes(RUN.id)).toBe(sees)
    expect((await status.run({ sop_name: 'deploy' }, context)).includes(RUN.id)).toBe(sees)
    const asks = Promise.resolve(approve.precheck?.({ run_id: RUN.id }, context))
    const tries = [status.run({ run_id: RUN.id }, context), approve.run({ run_id: RUN.id }, { ...context, approvedBy: 'device:o' }), asks]
    for (const tried of tries) {
      if (sees) await expect(tried).resolves.not.toThrow()
      else await expect(tried).rejects.toMatchObject({ code: 'not_found' })
    }
  })

  test('a run of an event is seen by operators only', async () => {
    const { host, sops } = engine()
    const { starter: _, ...event } = RUN.event
    sops.get = async () => ({ ...RUN, event })
    for (const [standing, caller] of PEOPLE) {
      const seen = toolNamed(host, 'sop_status').run({ run_id: RUN.id }, { ...toolContext(), standing, caller })
      if (standing === 'operator') await expect(seen).resolves.toContain(RUN.id)
      else await expect(seen).rejects.toMatchObject({ code: 'not_found' })
    }
  })

  test('an operator approves the start of a procedure that is not open to the principal', () => {
    const { host, sops } = engine()
    const decider = (standing: Standing) => {
      const declared = toolNamed(host, 'sop_execute').decider
      return typeof declared === 'function' ? declared({ name: 'deploy' }, { ...toolContext(), standing }) : declared
    }
    const [help, deploy, digest] = sops.list()
    expect(PEOPLE.map(([standing]) => decider(standing))).toEqual(['asker', ...Array(5).fill('operator')])
    sops.list = () => [help, { ...deploy, openTo: 'listed' }, digest] as SopSummary[]
    expect(PEOPLE.map(([standing]) => decider(standing))).toEqual(['asker', 'asker', 'asker', 'asker', 'operator', 'operator'])
    sops.list = () => []
    expect(decider('client')).toBe('operator')
  })

  test('a start that was judged before a procedure was closed does not run', async () => {
    const { host, sops, calls } = engine()
    const [help, deploy, digest] = sops.list()
    const closed = sops.list
    sops.list = () => [help, { ...deploy, openTo: 'client' }, digest] as SopSummary[]
    sops.loaded = async () => {
      sops.list = closed
    }
    const context = { ...toolContext(), standing: 'client', caller: 'device:d1', approvedBy: 'device:d1' } as const
    await expect(toolNamed(host, 'sop_execute').run({ name: 'deploy' }, context)).rejects.toMatchObject({ code: 'conflict' })
    expect(calls).toEqual([])
  })

  test('a start names its starter with the standing of the turn', async () => {
    const { host, calls } = engine()
    const said = await toolNamed(host, 'sop_execute').run({ name: 'deploy' }, { ...toolContext(), standing: 'client', caller: 'device:d2' })
    expect(calls).toMatchObject([['deploy', { starter: 'device:d2', standing: 'client' }]])
    expect(said).toBe('Started.\nrun-1')
  })

  test('sop_list shows triggers and the number of runs to operators only', async () => {
    const list = (standing: Standing) => toolNamed(engine().host, 'sop_list').run({ filter: 'deploy' }, { ...toolContext(), standing })
    expect(await list('operator')).toContain('deploy (high, auto, 2 steps, webhook:/deploy, 1 active): Ships it')
    expect(await list('client')).toContain('deploy (high, auto, 2 steps, an operator approves its start): Ships it')
  })
})

describe('tool-sop', () => {
  test('sop_approve rejects a call that no person has approved', async () => {
    const { host, calls } = engine()
    await expect(toolNamed(host, 'sop_approve').run({ run_id: 'run-1' }, toolContext())).rejects.toMatchObject({ code: 'forbidden' })
    expect(calls).toEqual([])
  })

  test('sop_approve passes on the person who approved the call', async () => {
    const { host, calls } = engine()
    const said = await toolNamed(host, 'sop_approve').run({ run_id: 'run-1' }, { ...toolContext(), approvedBy: 'telegram:7' })
    expect(said).toContain('Approved by telegram:7.')
    expect(calls).toEqual([['run-1', 'telegram:7']])
  })

  test('sop_approve needs an approval under every policy', () => {
    expect(toolNamed(engine().host, 'sop_approve')).toMatchObject({ alwaysAsks: true, risk: 'execute', decider: 'operator' })
  })

  test('sop_advance reports for the turn it is called in', async () => {
    const { host, calls } = engine()
    await toolNamed(host, 'sop_advance').run({ run_id: 'run-1', status: 'failed', output: 'no disk' }, { ...toolContext(), turn: 'turn-9' })
    expect(calls).toEqual([['run-1', 'turn-9', { status: 'failed', output: 'no disk' }]])
  })

  test('sop_status shows the results of a run and what it waits for', async () => {
    const said = await toolNamed(engine().host, 'sop_status').run({ run_id: 'run-1' }, toolContext())
    expect(said).toBe(
      [
        'run-1: deploy, waiting_approval, step 2 of 2, started 1970-01-01T00:00:00.000Z',
        'Step 1 (Build): completed. built',
        'It waits for a person before step 2 (Ship), since 1970-01-01T00:00:05.000Z.',
      ].join('\n'),
    )
  })

  test('sop_list finds procedures by a part of the name or by priority', async () => {
    const list = (filter: string) => toolNamed(engine().host, 'sop_list').run({ filter }, toolContext())
    expect(await list('dig')).toContain('digest (low')
    expect(await list('high')).toContain('deploy (high')
    expect(await list('nothing')).toBe('No procedure matches "nothing".')
  })

  test('rejects calls as unavailable where no engine runs', async () => {
    const list = toolNamed(testHost({}), 'sop_list')
    await expect(list.run({ filter: '' }, toolContext())).rejects.toMatchObject({ code: 'unavailable' })
  })
})
