import type { Inbound } from '@sluice/sdk'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { expect, test } from 'vitest'
import { OVERLAP_MS } from './cursors.ts'
import { MATTERMOST_BOT, MATTERMOST_CHANNEL, MATTERMOST_DIRECT, MATTERMOST_PRIVATE, MATTERMOST_USER } from './testing/fake.ts'
import { mattermostHarness, receives, until } from './testing/harness.ts'

const harness = mattermostHarness()
const { signal } = new AbortController()

const position = async (): Promise<number> => {
  const { posts } = (await harness.host.keyValue.get('cursors')) as { posts: { after: string } }
  return Number(posts.after)
}

test('messages from before the first connection are not answered', async () => {
  const { fake } = harness
  fake.say({ text: 'long ago', isLost: true })
  const listening = await harness.connect()
  await harness.host.advance(5)
  fake.say({ text: 'now' })
  await receives(listening, 'now')
})

test('a message from a time without the channel arrives once, also if it shares a millisecond with the last one', async () => {
  const { fake } = harness
  const first = await harness.connect()
  fake.say({ text: 'one' })
  await receives(first, 'one')
  await first.stop()
  fake.say({ text: 'the same millisecond', isLost: true })
  fake.say({ text: 'another conversation', channel: MATTERMOST_DIRECT, isLost: true })
  const second = await harness.connect()
  // The daemon drops the message that it has, by its id.
  await until(() => expect(second.texts().toSorted()).toEqual(['another conversation', 'one', 'the same millisecond']))
  expect(new Set(second.received.map(({ id }) => id)).size).toBe(3)
  await second.stop()
  expect(await position()).toBeGreaterThanOrEqual(harness.host.clock.nowMs())
})

test('a post from the future hides no later post', async () => {
  const { fake, host } = harness
  const first = await harness.connect()
  fake.say({ text: 'from the future', createdAtMs: host.clock.nowMs() + 365 * 86_400_000 })
  await receives(first, 'from the future')
  await first.stop()
  await host.advance(OVERLAP_MS * 2)
  fake.say({ text: 'missed', isLost: true })
  const second = await harness.connect()
  await until(() => expect(second.texts()).toContain('missed'))
})

test('an edit, a deletion and a press are read, and an earlier version of a message is not', async () => {
  const { fake, host } = harness
  const first = await harness.connect()
  const edited = fake.say({ text: 'on' })
  const deleted = fake.say({ text: 'wrong' })
  await receives(first, 'on', 'wrong')
  const buttons = [
    { label: 'Approve', value: 'ok:1', tone: 'good' as const },
    { label: 'Reject', value: 'no:1', tone: 'bad' as const },
  ]
  const prompt = await first.channel.send({ to: MATTERMOST_CHANNEL }, { text: 'May it?', buttons, clientId: 'a' }, signal)
  await first.stop()
  await host.advance(OVERLAP_MS * 2)
  fake.posts.edit(edited, { message: 'one' })
  fake.delete(deleted, { isLost: true })
  fake.react(prompt.id, 'white_check_mark', { isLost: true })
  const second = await harness.connect()
  // The edited message itself is read again; the daemon drops it, by its id.
  await until(() => expect(second.received).toHaveLength(4))
  const changes = second.received.filter(({ changes, pressed }) => changes ?? pressed)
  expect(changes).toMatchObject([
    { text: 'one', changes: { message: edited, what: 'edited' } },
    { changes: { message: deleted, what: 'deleted' } },
    { sender: MATTERMOST_USER, pressed: { message: prompt.id, value: 'ok:1' } },
  ])
})

test('more messages than one answer has are all read', async () => {
  const { fake, host } = harness
  const first = await harness.connect()
  fake.say({ text: 'before' })
  await receives(first, 'before')
  await first.stop()
  await host.advance(OVERLAP_MS * 2)
  for (let n = 0; n < 1300; n++) fake.say({ text: `${n}`, isLost: true })
  const second = await harness.connect()
  await until(() => expect(new Set(second.texts()).size).toBe(1301))
  expect(second.gaps).toEqual([])
})

test('no message is missed when the answer is full of earlier versions of edited posts', async () => {
  const { fake, host } = harness
  const first = await harness.connect()
  fake.say({ text: 'before' })
  await receives(first, 'before')
  const { id } = await first.channel.send({ to: MATTERMOST_CHANNEL }, { text: 'draft', clientId: 'a' }, signal)
  await first.stop()
  await host.advance(OVERLAP_MS * 2)
  for (let n = 0; n < 1100; n++) fake.posts.edit(id, { message: `draft ${n}` })
  fake.say({ text: 'missed', isLost: true })
  const second = await harness.connect()
  await until(() => expect(second.texts()).toContain('missed'))
})

test('a missed message that was edited meanwhile arrives once, with its newest text', async () => {
  const { fake, host } = harness
  const first = await harness.connect()
  fake.say({ text: 'before' })
  await receives(first, 'before')
  await until(async () => {
    await host.advance(6000)
    expect(await position()).toBeGreaterThan(OVERLAP_MS * 2)
  })
  await first.stop()
  await host.advance(OVERLAP_MS * 2)
  fake.posts.edit(fake.say({ text: 'mised', isLost: true }), { message: 'missed' })
  const second = await harness.connect()
  await receives(second, 'before', 'missed')
})

test('messages of more than an hour are skipped and reported, and fresh ones arrive', async () => {
  const { fake, host } = harness
  const first = await harness.connect()
  fake.say({ text: 'before' })
  await receives(first, 'before')
  await until(async () => {
    await host.advance(6000)
    expect(await position()).toBeGreaterThan(OVERLAP_MS * 2)
  })
  await first.stop()
  const lastMs = await position()
  await host.advance(60_000)
  fake.say({ text: 'old', isLost: true })
  fake.say({ text: 'of a bot', props: { from_bot: 'true' }, channel: MATTERMOST_PRIVATE, isLost: true })
  await host.advance(2 * 3_600_000)
  fake.say({ text: 'fresh', isLost: true })
  const second = await harness.connect()
  await receives(second, 'fresh')
  await until(() => expect(second.gaps).toHaveLength(1))
  expect(second.gaps[0]?.why).toContain('more than an hour old')
  expect(second.gaps[0]?.sinceMs).toBe(lastMs)
})

test('after hours without messages no gap is reported', async () => {
  const { fake, host } = harness
  const first = await harness.connect()
  fake.say({ text: 'before' })
  await receives(first, 'before')
  await until(async () => {
    await host.advance(6000)
    expect(await position()).toBeGreaterThan(OVERLAP_MS * 2)
  })
  await first.stop()
  await host.advance(3 * 3_600_000)
  const second = await harness.connect()
  fake.say({ text: 'after' })
  await receives(second, 'after')
  expect(second.gaps).toEqual([])
})

test('a conversation that the bot left does not keep the others from being read', async () => {
  const { fake, host } = harness
  const first = await harness.connect()
  fake.say({ text: 'before' })
  await receives(first, 'before')
  await first.stop()
  fake.say({ text: 'hidden', isLost: true })
  fake.say({ text: 'seen', channel: MATTERMOST_PRIVATE, isLost: true })
  fake.fail(
    { fault: 'status', status: 403, body: { id: 'api.context.permissions.app_error', message: 'No.' } },
    { matches: ({ path }) => path.endsWith(`/channels/${MATTERMOST_CHANNEL}/posts`) },
  )
  const second = await harness.connect()
  await receives(second, 'seen')
  expect(JSON.stringify(host.logs)).toContain('can no longer be read')
})

test('a failed read is tried again, and the position does not move before it succeeds', async () => {
  const { fake, host } = harness
  const first = await harness.connect()
  fake.say({ text: 'before' })
  await receives(first, 'before')
  await first.stop()
  await host.advance(OVERLAP_MS * 2)
  const before = await position()
  fake.say({ text: 'missed', isLost: true })
  fake.fail(
    { fault: 'status', status: 500, body: { id: 'app.post.get_posts_since.app_error', message: 'No.' } },
    { times: 2, matches: ({ query }) => query.has('since') },
  )
  const second = await harness.connect()
  expect(await position()).toBe(before)
  fake.say({ text: 'new' })
  await until(async () => {
    await host.advance(2000)
    expect(second.texts().toSorted()).toEqual(['before', 'missed', 'new'])
  })
})

test('a stored position of another form is ignored', async () => {
  const keyValue = memoryKeyValue()
  await keyValue.set('cursors', { posts: { after: 'yesterday' }, other: { after: '1' } })
  const { createCursors, readsFromMs } = await import('./cursors.ts')
  const cursors = createCursors(keyValue)
  await cursors.load()
  expect(readsFromMs(cursors)).toBeUndefined()
})

test('messages of the bot are never delivered', async () => {
  const { fake } = harness
  const first = await harness.connect()
  await first.stop()
  fake.say({ text: 'own', from: MATTERMOST_BOT.id, isLost: true })
  fake.say({ text: 'person', isLost: true })
  const second = await harness.connect()
  await receives(second, 'person')
  const senders = new Set(second.received.map(({ sender }: Inbound) => sender))
  expect(senders).toEqual(new Set([MATTERMOST_USER]))
})
