/** Approvals and notifications over HTTP, through the real application and store. */

import type { Channel, Waiting } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { type TestGateway, type TestGatewayOptions, testGateways } from '../testing.ts'

const gateway = testGateways()

const channel = (target: 'community' | 'workspace' | 'messenger', to: string | null): Channel => ({
  name: target,
  allow: ['*'],
  limits: { text: 400, unit: 'utf16' },
  notifications: {
    target,
    opensThreads: target !== 'messenger',
    account: 'bot',
    key: `channels_config.${target}.channel`,
    ...(to !== null && { to: { to } }),
  },
  send: async () => ({ id: '1' }),
})

const CHANNELS = [channel('community', 'ops'), channel('workspace', null)]
const REQUEST = { type: 'human_approval_request', run_id: 'run 1', step_id: 'a/b', content: { title: 'Deploy?', message: 'v2' } }

async function served(options: TestGatewayOptions = {}) {
  const queued: Waiting[] = []
  const made = gateway({
    snapshot: { channels: CHANNELS },
    approvalChannels: ['community'],
    withStreams: true,
    queued: (replies) => void queued.push(...replies),
    ...options,
  })
  await made.startApprovals()
  const { token, device } = await made.pair()
  const json = async (path: string, body?: unknown, headers: Record<string, string> = { authorization: `Bearer ${token}` }) => {
    const response = await made.request(path, {
      ...(body !== undefined && { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) }),
      headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  return { made, device, queued, json, post: (event: unknown) => json('/api/channel-events', event, {}) }
}

const emitted = ({ runtime }: TestGateway) => runtime.bus.recent(100).map(({ envelope }) => envelope)
const AT = '/api/approvals/run%201/a%2Fb'

test('a request is stored, prompted for and broadcast, and answered with its state', async () => {
  const { made, post, queued } = await served()
  const event = { ...REQUEST, workflow_name: 'release', timeout: 60 }
  const { status, body } = await post(event)
  expect(status).toBe(200)
  expect(body).toEqual({
    ok: true,
    event_id: 'test-2',
    channels: [{ channel: 'community', status: 'queued', detail: 'the prompt is in the outbox', outbox: [1] }],
    approval: { run_id: 'run 1', step_id: 'a/b', state: 'pending', expires_at: '2026-01-01T00:01:00.000Z', status_url: AT },
  })
  expect(emitted(made)).toMatchObject([
    { type: 'human_approval_request', run_id: 'run 1', step_id: 'a/b', workflow_name: 'release', title: 'Deploy?', message: 'v2' },
    { type: 'channel_event', payload: event },
  ])
  expect(await made.store.outbox.get(1)).toMatchObject({ channel: 'community', to: { to: 'ops' }, state: 'queued' })
  expect(queued).toMatchObject([{ number: 1, channel: 'community' }])
})

test('a page needs both before_run and before_step', async () => {
  const { post, json } = await served()
  await post(REQUEST)
  expect(await json('/api/approvals?before_run=run%201')).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
  expect(await json('/api/approvals?before_step=a%2Fb')).toMatchObject({ status: 400 })
  expect(await json('/api/approvals?before_run=run%201&before_step=a%2Fb')).toEqual({ status: 200, body: { approvals: [], next: null } })
})

test('a key that is a path segment such as .. is refused', async () => {
  const { post } = await served()
  for (const id of ['.', '..']) {
    expect(await post({ ...REQUEST, run_id: id })).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
    expect(await post({ ...REQUEST, step_id: id })).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
  }
  expect(await post({ ...REQUEST, step_id: '...' })).toMatchObject({ status: 200 })
})

test('an empty workflow_name means the run', async () => {
  const { made, post } = await served()
  await post({ ...REQUEST, workflow_name: '' })
  expect(emitted(made)[0]).toMatchObject({ workflow_name: 'run 1' })
})

test('a repeat sends no prompts and is answered with the state', async () => {
  const { made, post, json } = await served()
  await post(REQUEST)
  await json(AT, { approved: false, feedback: 'not today' })
  const { body } = await post(REQUEST)
  expect(body).toMatchObject({ channels: [], approval: { state: 'rejected' } })
  const types = emitted(made).map(({ type }) => type)
  expect(types.filter((type) => type === 'human_approval_request')).toHaveLength(1)
  expect(types.filter((type) => type === 'channel_event')).toHaveLength(2)
})

test.each([
  ['no run_id', { run_id: undefined }],
  ['no step_id', { step_id: '' }],
  ['an id that is too long', { step_id: 'x'.repeat(201) }],
  ['an id with a line break', { step_id: 'a\nb' }],
  ['a keyword that says both', { approve_keywords: ['ok'], reject_keywords: [' OK'] }],
  ['a keyword that is a default of the other list', { approve_keywords: ['no'] }],
  ['a blank keyword', { approve_keywords: [' '] }],
  ['a keyword with a backtick', { reject_keywords: ['`'] }],
  ['too many keywords', { reject_keywords: Array.from({ length: 17 }, (_, index) => `k${index}`) }],
  ['a time-out before now', { timeout: -1 }],
  ['a title that is too long', { content: { title: 'x'.repeat(257) } }],
])('%s is a 400, and nothing is broadcast or stored', async (_, change) => {
  const { made, post } = await served()
  expect(await post({ ...REQUEST, ...change })).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
  expect(made.runtime.bus.seq).toBe(0)
  expect(await made.store.approvals.list({ limit: 9 })).toEqual([])
})

test('the key of a tool call is refused', async () => {
  const { made, post } = await served()
  const question = { runId: 'run 1', stepId: 'a/b', gate: 'tool', workflow: 'shell', title: 't', message: 'm', timeoutSecs: 0 } as const
  await made.runtime.approvals.open(question)
  expect(await post(REQUEST)).toMatchObject({ status: 409, body: { code: 'conflict' } })
})

test('other events go to the outbox, and every named channel has a result', async () => {
  const { made, post, queued } = await served()
  const { body } = await post({
    type: 'workflow_notification',
    content: { message: 'all green' },
    channels: ['Dashboard', 'COMMUNITY', 'workspace', 'messenger', 'fax', 'community'],
  })
  expect(body.channels).toEqual([
    { channel: 'Dashboard', status: 'broadcast', detail: 'sent to every subscriber of /api/events and /ws/events' },
    { channel: 'COMMUNITY', status: 'queued', detail: 'in the outbox', outbox: [1] },
    { channel: 'workspace', status: 'unavailable', detail: expect.stringContaining('set channels_config.workspace.channel') },
    { channel: 'messenger', status: 'unavailable', detail: expect.stringContaining('channel-telegram') },
    { channel: 'fax', status: 'unavailable', detail: expect.stringContaining('no such channel') },
  ])
  expect(await made.store.outbox.get(1)).toMatchObject({ to: { to: 'ops' }, text: 'Notification\n\nall green' })
  expect(queued.map(({ number }) => number)).toEqual([1])
})

test('channel_id overrides the configured conversation, and long texts are split', async () => {
  const { made, post } = await served()
  const content = { title: 'Long', message: 'word '.repeat(200) }
  const { body } = await post({ type: 'note', content, channels: ['workspace'], channel_id: -1001 })
  expect(body.channels).toMatchObject([{ status: 'queued', outbox: [1, 2, 3] }])
  expect(await made.store.outbox.get(3)).toMatchObject({ channel: 'workspace', to: { to: '-1001' }, part: 3, parts: 3 })
})

test('a feature without configuration is reported as such', async () => {
  const status = { flag: null, kind: 'channel', compiled: true, installed: true, configured: false, build: null } as const
  const feature = { ...status, feature: 'channel-telegram', state: 'unconfigured', reason: 'bot_token is not set' } as const
  const { post } = await served({ snapshot: { channels: CHANNELS, features: [feature] } })
  const { body } = await post({ type: 'note', channels: ['messenger'] })
  expect(body.channels).toMatchObject([{ detail: 'channel-telegram is unconfigured: bot_token is not set' }])
})

test('a caller of a gateway without pairing decides as device:local', async () => {
  const { post, json } = await served({ config: { require_pairing: false } })
  await post(REQUEST)
  expect(await json(AT, { approved: true })).toMatchObject({ status: 200 })
  expect((await json(AT)).body).toMatchObject({ state: 'approved', by: 'device:local' })
})

test('the first device decides, and the next one gets 409 with the state', async () => {
  const { made, device, post, json } = await served()
  await post(REQUEST)
  expect(await json(AT, { approved: true, feedback: 'fine' })).toEqual({
    status: 200,
    body: { status: 'ok', run_id: 'run 1', step_id: 'a/b', approved: true, state: 'approved' },
  })
  expect(await json(AT, { approved: false })).toMatchObject({
    status: 409,
    body: { code: 'conflict', state: 'approved', by: `device:${device}` },
  })
  const { body } = await json(AT)
  expect(body).toMatchObject({ run_id: 'run 1', state: 'approved', by: `device:${device}`, feedback: 'fine', gate: 'event' })
  expect(body).not.toHaveProperty('token')
  await expect
    .poll(() => emitted(made).at(-1))
    .toMatchObject({
      type: 'human_approval_resolved',
      run_id: 'run 1',
      step_id: 'a/b',
      approved: true,
      state: 'approved',
      feedback: 'fine',
      by: `device:${device}`,
    })
})

test('reading and deciding need a token, and deciding a valid body', async () => {
  const { post, json } = await served()
  await post(REQUEST)
  for (const path of ['/api/approvals', AT]) expect(await json(path, undefined, {})).toMatchObject({ status: 401 })
  expect(await json(AT, { approved: true }, {})).toMatchObject({ status: 401 })
  for (const body of [{}, { approved: 'yes' }, { approved: true, feedback: 'x'.repeat(4001) }])
    expect(await json(AT, body)).toMatchObject({ status: 400 })
  expect(await json('/api/approvals/run%201/other', { approved: true })).toMatchObject({ status: 404, body: { code: 'not_found' } })
  expect(await json('/api/approvals/run%201/other')).toMatchObject({ status: 404 })
  expect((await json(AT)).body.state).toBe('pending')
})

test('the list is paged, newest first, and filtered by state', async () => {
  const { post, json } = await served()
  for (const step_id of ['s1', 's2', 's3']) await post({ ...REQUEST, step_id })
  await json('/api/approvals/run%201/s2', { approved: true })
  const steps = async (query: string) => {
    const { approvals } = (await json(`/api/approvals${query}`)).body as { approvals: { step_id: string }[] }
    return approvals.map(({ step_id }) => step_id)
  }
  expect(await steps('')).toEqual(['s3', 's2', 's1'])
  expect(await steps('?state=pending')).toEqual(['s3', 's1'])
  expect(await steps('?limit=2')).toEqual(['s3', 's2'])
  expect(await steps('?before_run=run%201&before_step=s2')).toEqual(['s1'])
  expect((await json('/api/approvals?state=open')).status).toBe(400)
})

describe('the tool call of a device', () => {
  const CALL_AT = '/api/approvals/turn-1/call-1'

  async function asked(options: TestGatewayOptions = {}) {
    const { made } = await served(options)
    const owner = await made.pair('owner', null, 'client')
    const operator = await made.pair('operator')
    const other = await made.pair('other', null, 'client')
    const question = { runId: 'turn-1', stepId: 'call-1', gate: 'tool', workflow: 'shell', title: 'shell wants to run' } as const
    await made.runtime.approvals.open({ ...question, message: 'command: secret plan', callHash: 'h', owner: owner.device, timeoutSecs: 0 })
    const as = async ({ token }: { readonly token: string }, path: string, body?: unknown) => {
      const response = await made.request(path, {
        ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
        headers: { authorization: `Bearer ${token}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
      })
      return { status: response.status, text: await response.text() }
    }
    /** The approval as each route shows it. */
    const seen = async (device: { readonly token: string }) => {
      const answers = [await as(device, '/api/approvals'), await as(device, CALL_AT), await as(device, '/api/events/history')]
      return answers.map(({ text }) => (text.includes('secret plan') ? 'whole' : text.includes('call-1') ? 'outline' : 'nothing'))
    }
    return { made, owner, operator, other, as, seen }
  }

  test('is shown to this device, which may decide it', async () => {
    const { owner, as, seen, made } = await asked()
    expect(await seen(owner)).toEqual(['whole', 'whole', 'whole'])
    expect((await as(owner, CALL_AT, { approved: true })).status).toBe(200)
    await expect.poll(() => emitted(made).at(-1)).toMatchObject({ type: 'human_approval_resolved', by: `device:${owner.device}` })
    expect((await as(owner, '/api/events/history')).text).toContain('human_approval_resolved')
  })

  test('is an outline for operators, who cannot decide it', async () => {
    const { operator, as, seen, made } = await asked()
    expect(await seen(operator)).toEqual(['outline', 'outline', 'outline'])
    expect((await as(operator, CALL_AT)).text).toContain('The call is shown to the device that asked')
    for (const approved of [true, false]) expect((await as(operator, CALL_AT, { approved })).status).toBe(403)
    expect(await made.runtime.approvals.get({ runId: 'turn-1', stepId: 'call-1' })).toMatchObject({ state: 'pending' })
  })

  test('does not exist for another client', async () => {
    const { other, as, made } = await asked()
    expect((await as(other, '/api/approvals')).text).toBe('{"approvals":[],"next":null}')
    expect((await as(other, '/api/events/history')).text).toBe('{"events":[]}')
    expect((await as(other, CALL_AT)).status).toBe(404)
    expect((await as(other, CALL_AT, { approved: true })).status).toBe(404)
    expect(await made.runtime.approvals.get({ runId: 'turn-1', stepId: 'call-1' })).toMatchObject({ state: 'pending' })
  })

  test('is shown to operators if [approvals] channels names the dashboard', async () => {
    const { operator, other, as, seen } = await asked({ approvalChannels: ['Dashboard'] })
    expect(await seen(operator)).toEqual(['whole', 'whole', 'whole'])
    expect((await as(other, CALL_AT, { approved: true })).status).toBe(404)
    expect((await as(operator, CALL_AT, { approved: true })).status).toBe(200)
  })

  test('is listed for its owner; approvals of programs are listed for operators', async () => {
    const { owner, operator, as, made } = await asked()
    for (const [stepId, device] of Object.entries({ a: owner.device, b: 'another', c: owner.device }))
      await made.runtime.approvals.open({
        ...{ runId: 'turn-2', stepId, gate: 'tool', workflow: 'shell', title: 't', message: 'm', timeoutSecs: 0 },
        owner: device,
      })
    await made.request('/api/channel-events', {
      method: 'POST',
      body: JSON.stringify(REQUEST),
      headers: { 'content-type': 'application/json' },
    })
    const steps = async (device: { readonly token: string }, query = '') => {
      const { approvals } = JSON.parse((await as(device, `/api/approvals${query}`)).text) as { approvals: { step_id: string }[] }
      return approvals.map(({ step_id }) => step_id)
    }
    expect(await steps(owner)).toEqual(['c', 'a', 'call-1'])
    expect(await steps(owner, '?limit=1&state=pending&before_run=turn-2&before_step=c')).toEqual(['a'])
    expect(await steps(operator)).toEqual(['a/b', 'c', 'b', 'a', 'call-1'])
    expect((await as(owner, AT)).status).toBe(404)
  })
})
