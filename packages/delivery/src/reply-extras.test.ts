/** Replies that replace a draft and replies with files, through the whole of delivery on a real store. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deliverySection } from '@sluice/config'
import { LaneQueue } from '@sluice/kit'
import { AppError, type Channel, type ClientId, type NewReply, type Outbound } from '@sluice/sdk'
import { openStore } from '@sluice/store'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { memoryWorkspace } from '@sluice/testkit/memory-workspace'
import * as v from 'valibot'
import { afterEach, expect, test } from 'vitest'
import { type Deliveries, startDeliveries } from './deliveries.ts'

const REPLY: NewReply = {
  channel: 'x',
  account: 'bot',
  to: { to: 'room', replyTo: 'm1' },
  text: 'the whole answer',
  part: 1,
  parts: 1,
  clientId: 'c1',
  turnId: null,
  createdAtMs: 0,
}
const DRAFT = { edits: 'p1', elseSend: true } as const

const ending: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end()
})

interface Options {
  readonly channel?: Partial<Channel>
  readonly files?: Readonly<Record<string, string>>
  /** False for a channel that cannot edit. */
  readonly isEditable?: boolean
  /** Replies that the last run was sending. */
  readonly cut?: readonly NewReply[]
}

/** The calls of the channel, in order. */
type Deed = Outbound & { readonly edits?: string }

async function bench({ channel: changes = {}, files = {}, cut = [], isEditable = true }: Options = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'extras-'))
  const clock = testClock()
  const host = testHost({ clock })
  const store = openStore({ file: join(folder, 'sluice.db'), clock, log: host.log })
  const deeds: Deed[] = []
  const channel: Channel = {
    name: 'x',
    allow: ['*'],
    limits: { text: 1000, unit: 'utf16', attachments: { count: 2, bytesMax: 20 } },
    async send(_, outbound) {
      deeds.push(outbound)
      return { id: `sent-${deeds.length}` }
    },
    async update(_, { id }, outbound) {
      deeds.push({ ...outbound, edits: id })
    },
    ...changes,
  }
  const { update: _, ...uneditable } = channel
  const workspace = memoryWorkspace(files)
  for (const number of await store.outbox.add(cut)) await store.outbox.start(number)
  const deliveries: Deliveries = await startDeliveries({
    store,
    events: host.events,
    approvals: {
      matchReply: () => undefined,
      handleReply: () => Promise.reject(new Error('no reply to an approval comes here')),
      current: async (outbound) => outbound,
    },
    changedElsewhere: async () => {},
    clock,
    log: host.log,
    features: {
      onChange: () => () => {},
      channels: () => [isEditable ? channel : uneditable],
      config: () => v.parse(deliverySection.schema, {}),
      workspace: () => workspace,
      transcribe: () => undefined,
      procedures: () => undefined,
    },
    turns: {
      agent: { run: () => Promise.reject(new Error('no turn runs here')) },
      lanes: new LaneQueue({ clock, permits: () => 1 }),
      clients: { ofCaller: (caller) => caller as ClientId },
    },
    telemetry: { observe: () => {}, traces: () => false, within: (_, work) => work() },
    scrub: (text) => text,
  })
  ending.push(async () => {
    await deliveries.stop(0)
    await store.close()
    rmSync(folder, { recursive: true })
  })
  const settle = async () => {
    for (let round = 0, quiet = 0; quiet < 40 && round < 10_000; round++) {
      await new Promise((resolve) => setImmediate(resolve))
      quiet = store.pending() > 0 ? 0 : quiet + 1
    }
  }
  await settle()
  return {
    deeds,
    async pass(ms: number) {
      await clock.advance(ms)
      await settle()
    },
    async send(extras: NonNullable<NewReply['extras']>, text = REPLY.text) {
      await store.outbox.add([{ ...REPLY, text, extras, createdAtMs: clock.nowMs() }])
      deliveries.wake()
      await settle()
    },
    row: async () => (await store.outbox.list({ limit: 1 }))[0],
  }
}

/** Fails once with each code, then succeeds. */
function failing(
  codes: readonly ('upstream' | 'invalid_request' | 'not_found' | 'rate_limited')[],
  deeds: Deed[],
): NonNullable<Channel['update']> {
  const left = [...codes]
  return async (_, { id }, outbound) => {
    const code = left.shift()
    if (code) throw new AppError(code, 'not this time')
    deeds.push({ ...outbound, edits: id })
  }
}

test('a reply replaces its draft', async () => {
  const { send, deeds, row } = await bench()
  await send(DRAFT)
  expect(deeds).toEqual([{ text: 'the whole answer', clientId: 'c1', edits: 'p1' }])
  expect(await row()).toMatchObject({ state: 'sent', providerId: 'p1' })
})

test('an edit with an unknown outcome is repeated, because repeating does no harm', async () => {
  const edited: Deed[] = []
  const { send, deeds, row, pass } = await bench({ channel: { update: failing(['upstream', 'upstream'], edited) } })
  await send(DRAFT)
  expect(await row()).toMatchObject({ state: 'failed', attempts: 0 })
  await pass(600_000)
  expect(edited).toMatchObject([{ edits: 'p1' }])
  expect(deeds).toEqual([])
  expect(await row()).toMatchObject({ state: 'sent', attempts: 1 })
})

test('an edit that a crash interrupted is repeated', async () => {
  const { deeds, row } = await bench({ cut: [{ ...REPLY, extras: DRAFT }] })
  expect(deeds).toMatchObject([{ edits: 'p1' }])
  expect(await row()).toMatchObject({ state: 'sent', attempts: 2 })
})

test.each(['invalid_request', 'not_found'] as const)('a reply is sent when its draft can no longer be edited (%s)', async (code) => {
  const { send, deeds, row } = await bench({ channel: { update: failing([code], []) } })
  await send(DRAFT)
  expect(deeds).toEqual([{ text: 'the whole answer', clientId: 'c1' }])
  expect(await row()).toMatchObject({ state: 'sent', providerId: 'sent-1' })
})

test('a reply is sent when its channel can no longer edit', async () => {
  const { send, deeds } = await bench({ isEditable: false })
  await send(DRAFT)
  expect(deeds).toEqual([{ text: 'the whole answer', clientId: 'c1' }])
})

test('a reply that is sent in place of an edit is not repeated', async () => {
  let sends = 0
  const { send, row, pass } = await bench({
    channel: {
      update: failing(['not_found'], []),
      async send() {
        sends += 1
        throw new AppError('upstream', 'the connection broke')
      },
    },
  })
  await send(DRAFT)
  await pass(600_000)
  expect(sends).toBe(1)
  expect(await row()).toMatchObject({ state: 'ambiguous', attempts: 1 })
})

test('a reply that is sent in place of an edit stays a message when it is retried', async () => {
  let refusals = 1
  const sent: Outbound[] = []
  const { send, row, pass } = await bench({
    channel: {
      update: failing(['not_found'], []),
      async send(_, outbound) {
        if (refusals-- > 0) throw new AppError('rate_limited', 'later', { retryAfterSecs: 1 })
        sent.push(outbound)
        return { id: 'p2' }
      },
    },
  })
  await send(DRAFT)
  await pass(600_000)
  expect(sent).toHaveLength(1)
  expect(await row()).toMatchObject({ state: 'sent', providerId: 'p2' })
})

test('an edit without a replacement is dead when the platform refuses it', async () => {
  const { send, deeds, row } = await bench({ channel: { update: failing(['not_found'], []) } })
  await send({ edits: 'p1' })
  expect(deeds).toEqual([])
  expect(await row()).toMatchObject({ state: 'dead' })
})

test('files are read when the reply is sent, and their markers are removed', async () => {
  const { send, deeds } = await bench({ files: { 'out/a.txt': 'all is well' } })
  await send({ files: [{ kind: 'file', path: 'out/a.txt' }] }, 'Here it is.')
  expect(deeds).toEqual([
    {
      text: 'Here it is.',
      clientId: 'c1',
      attachments: [{ kind: 'file', name: 'a.txt', source: { bytes: new Uint8Array(Buffer.from('all is well')) } }],
    },
  ])
})

test('a file that cannot be read gets a note, and the rest is sent', async () => {
  const { send, deeds } = await bench({ files: { 'a.txt': 'fine', 'large.txt': 'x'.repeat(21) } })
  const files = ['a.txt', 'gone.txt', 'large.txt', '../secret.txt'].map((path) => ({ kind: 'file', path }) as const)
  await send({ files }, 'Here they are.')
  expect(deeds[0]?.attachments?.map(({ name }) => name)).toEqual(['a.txt'])
  expect(deeds[0]?.text.split('\n')).toEqual([
    'Here they are.',
    expect.stringMatching(/^\(not attached: .*gone\.txt/),
    expect.stringMatching(/^\(not attached: /),
    expect.stringMatching(/^\(not attached: /),
  ])
})

test('notes are the whole message when no file can be read and there is no text', async () => {
  const { send, deeds } = await bench()
  await send({ files: [{ kind: 'file', path: 'gone.txt' }] }, '')
  expect(deeds).toEqual([{ text: expect.stringMatching(/^\(not attached: /), clientId: 'c1' }])
})
