import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { tellDueNotices } from '@sluice/runtime'
import { type Channel, defineFeature, type SluiceEvent, type SopRun, type Store } from '@sluice/sdk'
import { arrival, reply } from '@sluice/testkit/store-rules/delivery-samples'
import { ended, sopRun, startOf } from '@sluice/testkit/store-rules/sop-samples'
import { until } from '@sluice/testkit/until'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Daemon, startDaemon } from './daemon.ts'

let dataDir: string
let daemon: Daemon | undefined

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'notices-'))
})
afterEach(async () => {
  await daemon?.stop()
  daemon = undefined
  rmSync(dataDir, { recursive: true, force: true })
})

const offline = defineFeature({
  id: 'provider-offline',
  build: () => ({ providers: [{ kinds: ['offline'], load: async () => ({ provider: 'offline' }) as never }] }),
})

/** A daemon with two channels, which keep what is sent. */
async function start(config: string) {
  const sent: string[] = []
  const channel = (name: string): Channel => ({
    name,
    ...(name === 'x' && { notifications: { target: 'messenger', opensThreads: false, account: '', key: 'x.chat' } }),
    allow: ['*'],
    limits: { text: 1000, unit: 'utf16' },
    async send({ to }, { text }) {
      sent.push(`${name}:${to} ${text}`)
      return { id: String(sent.length) }
    },
  })
  const channels = defineFeature({ id: 'x-channels', build: () => ({ channels: [channel('x'), channel('y')] }) })
  writeFileSync(join(dataDir, 'config.toml'), config)
  const started = await startDaemon({
    features: [offline, channels],
    dataDir,
    configFile: join(dataDir, 'config.toml'),
    env: { SVC_LOG_LEVEL: 'error' },
    profile: 'test',
    version: '0',
    listens: false,
  })
  daemon = started
  const events: SluiceEvent[] = []
  started.runtime.bus.observe((event) => events.push(event))
  const notices = async () => {
    const page = (await started.call({ method: 'GET', path: '/api/notices' })) as {
      readonly notices: { readonly kind: string; readonly about: string }[]
    }
    return page.notices
  }
  const { outbox, keyValue } = started.runtime.store
  return {
    runtime: started.runtime,
    sent,
    notices,
    events,
    outbox,
    keyValue,
    emit: (event: SluiceEvent) => started.runtime.bus.emit(event),
  }
}

const down = (channel: string, state: 'down' | 'ok' = 'down'): SluiceEvent => ({
  type: 'channel_health',
  channel,
  state,
  detail: 'no route',
})
const paused = (session: string): SluiceEvent => ({ type: 'loop_stopped', channel: 'x', session_id: session, sender: 'bot', until: 'noon' })
const dead = (direction: 'inbound' | 'outbound', error: string): SluiceEvent => ({
  type: 'delivery',
  direction,
  channel: 'y',
  number: 7,
  state: 'dead',
  error,
})

test('a chat may be named by the word of its channel in the specification', async () => {
  const { sent, emit } = await start('[notify]\nchannels = ["messenger:77"]\n')
  emit(down('y'))
  await expect.poll(() => sent).toHaveLength(1)
  expect(sent[0]).toMatch(/^x:77 /)
})

test('a problem for operators is announced once in the chats of [approvals], and listed', async () => {
  const { sent, notices, events, emit } = await start('[approvals]\nchannels = ["x:ops", "dashboard"]\n')
  for (const event of [down('y'), down('y'), down('y', 'ok'), dead('inbound', 'it failed.'), dead('outbound', 'refused: too long')])
    emit(event)
  await expect.poll(() => sent).toHaveLength(3)
  expect(sent.toSorted()).toEqual([
    expect.stringMatching(/^x:ops Notification\s+A message on y could not be answered: it failed\. `sluice inbox replay 7`/),
    expect.stringMatching(/^x:ops Notification\s+A reply on y could not be delivered: refused: too long\. `sluice outbox show 7`/),
    expect.stringMatching(/^x:ops Notification\s+The channel y is down: no route\./),
  ])
  const listed = (await notices()).map(({ kind, about }) => `${kind}: ${about}`)
  expect(listed.toSorted()).toEqual(['channel: y down', 'given_up: inbox y', 'given_up: outbox y'])
  expect(events.filter(({ type }) => type === 'operator_notice')).toHaveLength(3)
})

test('a failed run is announced once for its procedure, with the beginning of its reason', async () => {
  const { sent, notices, emit } = await start('[approvals]\nchannels = ["x:ops"]\n')
  const failed = (run_id: string): SluiceEvent => ({
    type: 'sop_run',
    run_id,
    sop: 'alarm',
    status: 'failed',
    step: 1,
    steps: 2,
    reason: `Step 1 failed: ${'wrong key\n'.repeat(1000)}`,
  })
  for (const event of [failed('r1'), failed('r2')]) emit(event)
  await expect.poll(() => sent).toHaveLength(1)
  expect(sent[0]).toMatch(
    /^x:ops Notification\s+A run of the procedure alarm failed: Step 1 failed: wrong key .{1,300} `sluice sop status r1` shows it, and `sluice sop replay r1` starts it again\.$/,
  )
  expect(await notices()).toMatchObject([{ kind: 'given_up', about: 'procedure alarm' }])
})

test('[notify] chooses chats, kinds and pace', async () => {
  const config = '[approvals]\nchannels = ["x:ops"]\n[notify]\nchannels = ["y:alerts"]\nkinds = ["loop"]\nevery_mins = 0\n'
  const { sent, notices, emit } = await start(config)
  for (const event of [down('x'), paused('s1'), paused('s1')]) emit(event)
  await expect.poll(() => sent).toHaveLength(2)
  expect(sent[0]).toMatch(/^y:alerts Notification\s+Sluice paused a conversation with bot on x until noon/)
  expect(await notices()).toHaveLength(2)
})

test('a channel that does not work carries no notice about itself', async () => {
  const { sent, notices, emit } = await start('[notify]\nchannels = ["x:ops", "y:ops"]\n')
  emit(down('y'))
  await expect.poll(() => sent).toHaveLength(1)
  expect(sent[0]).toMatch(/^x:ops /)
  expect(await notices()).toHaveLength(1)
})

test('a refusal of a model is announced once for an agent and all its callers, and not as a message that is given up', async () => {
  const { sent, notices, emit } = await start('[approvals]\nchannels = ["x:ops"]\n')
  const failed = (part: object): SluiceEvent => ({
    type: 'turn_failed',
    turn_id: 't',
    session_id: null,
    source: 'y',
    code: 'upstream',
    error: 'the model refused our credentials',
    ...part,
  })
  emit(failed({}))
  emit(failed({ refused_for: 'credentials', inbox: 7 }))
  emit(dead('inbound', 'refused: the model refused our credentials'))
  emit(failed({ refused_for: 'credentials', source: 'webhook' }))
  emit(failed({ refused_for: 'quota', source: 'webhook', agent: 'ada' }))
  await expect.poll(notices).toHaveLength(2)
  await expect.poll(() => sent).toHaveLength(2)
  expect(sent.toSorted()).toEqual([
    expect.stringMatching(/^x:ops Notification\s+Sluice could not answer a message on y, .* our credentials\. `sluice inbox replay 7`/),
    expect.stringMatching(
      /^x:ops Notification\s+Sluice could not answer a turn of webhook, and repeating it would fail too: .* credentials\.$/,
    ),
  ])
  expect((await notices()).map(({ about }) => about).toSorted()).toEqual(['ada quota', 'main credentials'])
})

test('messages that may be missing are announced once for a channel', async () => {
  const { notices, emit } = await start('')
  for (const why of ['the mail with the UID 7 cannot be fetched: no', 'other'])
    emit({ type: 'channel_gap', channel: 'y', since: '2026-12-01T00:00:00Z', why })
  const text =
    'Messages on y may be missing since 2026-12-01T00:00:00Z: the mail with the UID 7 cannot be fetched: no. Sluice does not read them again.'
  await expect.poll(notices).toMatchObject([{ kind: 'given_up', about: 'missed y', text }])
})

test('a spent budget is announced, and the limit of a person is not', async () => {
  const { notices, emit } = await start('')
  const failed = { type: 'turn_failed', turn_id: 't', session_id: null, source: 'x', code: 'rate_limited' } as const
  emit({ ...failed, error: 'You reached the limit for spending: 1 USD a day' })
  for (let times = 0; times < 2; times++) emit({ type: 'budget_spent', period: 'day', limit_usd: 5, until: '2026-12-01T00:00:00Z' })
  emit({ ...failed, error: 'Daily budget of 5 USD is used up' })
  await expect.poll(notices).toMatchObject([{ kind: 'budget', about: 'day 2026-12-01T00:00:00Z' }])
})

test.each([60, 0])(
  'a notice that a crash kept from the chats is on the page, and is told once after the next start, with every_mins %i',
  async (mins) => {
    const config = `[approvals]\nchannels = ["x:ops"]\n[notify]\nevery_mins = ${mins}\n`
    const { notices, emit, outbox } = await start(config)
    vi.spyOn(outbox, 'addNews').mockRejectedValueOnce(new Error('killed'))
    emit(down('y'))
    await expect.poll(notices).toMatchObject([{ kind: 'channel', about: 'y down' }])
    const sent: string[] = []
    for (let starts = 0; starts < 3; starts++) {
      await daemon?.stop()
      const again = await start(config)
      await expect.poll(() => again.outbox.list({ limit: 9 })).toMatchObject([{ state: 'sent' }])
      expect(await again.notices()).toEqual([{ at: expect.any(String), kind: 'channel', about: 'y down', text: expect.any(String) }])
      sent.push(...again.sent)
    }
    expect(sent).toEqual([expect.stringMatching(/^x:ops Notification\s+The channel y is down: no route\./)])
  },
)

describe.each([60, 0])('with every_mins %i', (mins) => {
  const config = `[approvals]\nchannels = ["x:ops"]\n[notify]\nevery_mins = ${mins}\n`
  const atMs = Date.now()

  /** What ends without its event, as if a crash came right after the commit. */
  const ENDS: Readonly<Record<string, (store: Store) => Promise<unknown>>> = {
    'A message on y could not be answered: no end': async ({ inbox }) => {
      const kept = await inbox.keep(arrival(['m'], { channel: 'y', receivedAtMs: atMs }))
      await inbox.markDead(Number(kept[0]), { error: 'no end', atMs: Date.now() })
    },
    'A reply on y could not be delivered: refused': async ({ outbox }) => {
      const [number = 0] = await outbox.add([reply('text', { channel: 'y' })])
      await outbox.start(number)
      await outbox.giveUp(number, { state: 'dead', error: 'refused', atMs: Date.now() })
    },
    'A run of the procedure deploy failed: no such host': ({ sops }) => end(sops, { status: 'failed', reason: 'no such host' }),
    'A run of the procedure deploy waited too long': ({ sops }) => end(sops, { status: 'expired' }),
  }
  const end = async (sops: Store['sops'], part: Partial<SopRun>) => {
    await sops.start([startOf(sopRun('r'))], { atMs })
    await sops.advance(sopRun('r'), ended(sopRun('r'), { ...part, endedAtMs: Date.now() }), [])
  }

  test.each(Object.keys(ENDS))('"%s" is told once after the next start if a crash lost its event', async (text) => {
    const { runtime } = await start(config)
    await ENDS[text]?.(runtime.store)
    const told: string[] = []
    for (let starts = 0; starts < 3; starts++) {
      await daemon?.stop()
      const again = await start(config)
      await expect.poll(again.notices).toHaveLength(1)
      await expect.poll(async () => (await again.outbox.list({ limit: 9 })).filter(({ state }) => state === 'sent')).toHaveLength(1)
      await tellDueNotices(again.runtime)
      told.push(...again.sent)
    }
    expect(told).toEqual([expect.stringMatching(new RegExp(`^x:ops Notification\\s+${text}`))])
  })

  test('an end is told after the next start, although another kind of notice was about the same words', async () => {
    const { runtime, emit, notices } = await start(config)
    await ENDS['A run of the procedure deploy waited too long']?.(runtime.store)
    emit({ type: 'feature_failed', feature: 'deploy', error: 'no such module' })
    await expect.poll(notices).toHaveLength(1)
    await daemon?.stop()
    const again = await start(config)
    await expect.poll(again.notices).toMatchObject([{ kind: 'expired' }, { kind: 'config' }])
  })

  test('an end that was told is not told again after the next start', async () => {
    const { runtime, emit, sent } = await start(config)
    await ENDS['A message on y could not be answered: no end']?.(runtime.store)
    emit(dead('inbound', 'no end'))
    await expect.poll(() => sent).toHaveLength(1)
    await daemon?.stop()
    const again = await start(config)
    await tellDueNotices(again.runtime)
    expect([await again.notices(), again.sent]).toMatchObject([[{ about: 'inbox y' }], []])
  })
})

test('a notice whose chats a crash kept from being marked is not told again', async () => {
  const config = '[approvals]\nchannels = ["x:ops"]\n[notify]\nevery_mins = 0\n'
  const { sent, emit, keyValue } = await start(config)
  const notices = keyValue('gateway:notices')
  emit(down('y'))
  await expect.poll(() => sent).toHaveLength(1)
  const [row] = await notices.list('', 9)
  await notices.set(row?.key ?? '', { ...(row?.value as object), isDue: true })
  await daemon?.stop()
  const again = await start(config)
  await expect.poll(async () => JSON.stringify(await again.keyValue('gateway:notices').list('', 9))).not.toContain('isDue')
  expect([await again.notices(), again.sent]).toMatchObject([[{ about: 'y down' }], []])
})

test('the newest 100 notices are kept', async () => {
  const { notices, events, emit } = await start('[notify]\nevery_mins = 0\n')
  for (let index = 0; index < 104; index++) {
    emit(paused(`s${index}`))
    await until(() => events.filter(({ type }) => type === 'operator_notice').length === index + 1)
  }
  const listed = await notices()
  expect(listed).toHaveLength(100)
  expect(listed[0]).toMatchObject({ about: 's103' })
})
