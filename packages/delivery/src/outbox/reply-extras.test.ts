/** Replies that replace a draft and replies with files, through the whole of delivery on a real store. */
import { AppError, type Channel, type NewReply, type Outbound } from '@sluice/sdk'
import { memoryWorkspace } from '@sluice/testkit/memory-workspace'
import { expect, test } from 'vitest'
import { bench, clock, open, settle, setUpDeliveries } from '../testing/delivery-bench.ts'

setUpDeliveries()

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

interface OutboxOptions {
  readonly channel?: Partial<Channel>
  readonly files?: Readonly<Record<string, string>>
  /** False for a channel that cannot edit. */
  readonly isEditable?: boolean
  /** Replies that the last run was sending. */
  readonly interrupted?: readonly NewReply[]
}

/** A call of the channel: a message, or an edit of the message `edits`. */
type Call = Outbound & { readonly edits?: string }

async function outbox({ channel: changes = {}, files = {}, interrupted = [], isEditable = true }: OutboxOptions = {}) {
  const store = open()
  for (const number of await store.outbox.add(interrupted)) await store.outbox.start(number)
  const calls: Call[] = []
  const channel: Partial<Channel> = {
    limits: { text: 1000, unit: 'utf16', attachments: { count: 2, bytesMax: 20 } },
    async send(_, outbound) {
      calls.push(outbound)
      return { id: `sent-${calls.length}` }
    },
    async update(_, { id }, outbound) {
      calls.push({ ...outbound, edits: id })
    },
    ...changes,
  }
  const { update: _, ...uneditable } = channel
  const { deliveries } = await bench({ store, channel: isEditable ? channel : uneditable, workspace: memoryWorkspace(files) })
  await settle()
  return {
    calls,
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
  calls: Call[],
): NonNullable<Channel['update']> {
  const left = [...codes]
  return async (_, { id }, outbound) => {
    const code = left.shift()
    if (code) throw new AppError(code, 'not this time')
    calls.push({ ...outbound, edits: id })
  }
}

test('a reply replaces its draft', async () => {
  const { send, calls, row } = await outbox()
  await send(DRAFT)
  expect(calls).toEqual([{ text: 'the whole answer', clientId: 'c1', edits: 'p1' }])
  expect(await row()).toMatchObject({ state: 'sent', providerId: 'p1' })
})

test('a text of Sluice itself is escaped for its platform, and a reply of an earlier release is sent as it is', async () => {
  const markup: Channel['markup'] = { shows: [], write: ({ text }) => text.replaceAll('*', String.raw`\*`) }
  const own = await outbox({ channel: { markup } })
  await own.send({}, '2 * 3')
  expect(own.calls).toEqual([{ text: String.raw`2 \* 3`, plain: '2 * 3', clientId: 'c1' }])
  const quoting = await outbox({ channel: { markup } })
  await quoting.send({}, 'Run `ls *`? Reply with `yes`.')
  expect(quoting.calls).toEqual([{ text: 'Run `ls *`? Reply with `yes`.', clientId: 'c1' }])
  const earlier = await outbox({ channel: { markup }, interrupted: [{ ...REPLY, turnId: 't1', text: '**bold**', extras: DRAFT }] })
  expect(earlier.calls).toMatchObject([{ text: '**bold**' }])
})

test('an edit with an unknown outcome is repeated, because repeating does no harm', async () => {
  const edited: Call[] = []
  const { send, calls, row, pass } = await outbox({ channel: { update: failing(['upstream', 'upstream'], edited) } })
  await send(DRAFT)
  expect(await row()).toMatchObject({ state: 'failed', attempts: 0 })
  await pass(600_000)
  expect(edited).toMatchObject([{ edits: 'p1' }])
  expect(calls).toEqual([])
  expect(await row()).toMatchObject({ state: 'sent', attempts: 1 })
})

test('an edit that a crash interrupted is repeated', async () => {
  const { calls, row } = await outbox({ interrupted: [{ ...REPLY, extras: DRAFT }] })
  expect(calls).toMatchObject([{ edits: 'p1' }])
  expect(await row()).toMatchObject({ state: 'sent', attempts: 2 })
})

test.each(['invalid_request', 'not_found'] as const)('a reply is sent when its draft can no longer be edited (%s)', async (code) => {
  const { send, calls, row } = await outbox({ channel: { update: failing([code], []) } })
  await send(DRAFT)
  expect(calls).toEqual([{ text: 'the whole answer', clientId: 'c1' }])
  expect(await row()).toMatchObject({ state: 'sent', providerId: 'sent-1' })
})

test('a reply is sent when its channel can no longer edit', async () => {
  const { send, calls } = await outbox({ isEditable: false })
  await send(DRAFT)
  expect(calls).toEqual([{ text: 'the whole answer', clientId: 'c1' }])
})

test('a reply that is sent in place of an edit is not repeated', async () => {
  let sends = 0
  const { send, row, pass } = await outbox({
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
  const { send, row, pass } = await outbox({
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
  const { send, calls, row } = await outbox({ channel: { update: failing(['not_found'], []) } })
  await send({ edits: 'p1' })
  expect(calls).toEqual([])
  expect(await row()).toMatchObject({ state: 'dead' })
})

test('files are read when the reply is sent, and their markers are removed', async () => {
  const { send, calls } = await outbox({ files: { 'out/a.txt': 'all is well' } })
  await send({ files: [{ kind: 'file', path: 'out/a.txt' }] }, 'Here it is.')
  expect(calls).toEqual([
    {
      text: 'Here it is.',
      clientId: 'c1',
      attachments: [{ kind: 'file', name: 'a.txt', source: { bytes: new Uint8Array(Buffer.from('all is well')) } }],
    },
  ])
})

test('a file that cannot be read gets a note, and the rest is sent', async () => {
  const { send, calls } = await outbox({ files: { 'a.txt': 'fine', 'large.txt': 'x'.repeat(21) } })
  const files = ['a.txt', 'gone.txt', 'large.txt', '../secret.txt'].map((path) => ({ kind: 'file', path }) as const)
  await send({ files }, 'Here they are.')
  expect(calls[0]?.attachments?.map(({ name }) => name)).toEqual(['a.txt'])
  expect(calls[0]?.text.split('\n')).toEqual([
    'Here they are.',
    expect.stringMatching(/^\(not attached: .*gone\.txt/),
    expect.stringMatching(/^\(not attached: /),
    expect.stringMatching(/^\(not attached: /),
  ])
})

test('notes are the whole message without readable files and without text', async () => {
  const { send, calls } = await outbox()
  await send({ files: [{ kind: 'file', path: 'gone.txt' }] }, '')
  expect(calls).toEqual([{ text: expect.stringMatching(/^\(not attached: /), clientId: 'c1' }])
})
