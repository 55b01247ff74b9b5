import { AppError, type Outbound } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { TEXT_MAX } from './send.ts'
import {
  MATTERMOST_BOT,
  MATTERMOST_CHANNEL,
  MATTERMOST_DIRECT,
  MATTERMOST_OTHER_USER,
  MATTERMOST_TOKEN,
  MATTERMOST_USER,
} from './testing/fake.ts'
import { idOf } from './testing/fake-posts.ts'
import { mattermostHarness, receives, until } from './testing/harness.ts'

const harness = mattermostHarness()
const { signal } = new AbortController()
const to = { to: MATTERMOST_CHANNEL }
const message = (text: string, more: Partial<Outbound> = {}): Outbound => ({ text, clientId: `client-${text}`, ...more })
const BUTTONS = [
  { label: 'Approve', value: 'approve:1', tone: 'good' as const },
  { label: 'Reject', value: 'reject:1', tone: 'bad' as const },
]
const isPost = ({ method, path }: { readonly method: string; readonly path: string }) => method === 'POST' && path.endsWith('/posts')

test('a reply goes into its thread, and to the channel if the thread was deleted', async () => {
  const { fake } = harness
  const root = fake.say({ text: 'question' })
  const channel = harness.channel()
  await channel.send({ ...to, thread: root }, message('in the thread'), signal)
  fake.delete(root)
  await channel.send({ ...to, thread: root }, message('without it'), signal)
  expect(fake.sent.map(({ message, root_id }) => [message, root_id])).toEqual([
    ['in the thread', root],
    ['without it', ''],
  ])
})

test('an edit replaces the text, and the same text again is not an error', async () => {
  const { fake } = harness
  const channel = harness.channel()
  const sent = await channel.send(to, message('draft'), signal)
  await channel.update?.(to, sent, message('final'), signal)
  await channel.update?.(to, sent, message('final'), signal)
  expect(fake.sent.map(({ message, props }) => [message, props.from_bot])).toEqual([['final', 'true']])
})

test('a post whose answer was lost is found, and is not ambiguous', async () => {
  const { fake } = harness
  for (const fault of ['lost', 'cut', 'garbage'] as const) {
    fake.fail({ fault }, { matches: isPost })
    const { id } = await harness.channel().send(to, message(fault), signal)
    expect(fake.posts.get(id)?.message).toBe(fault)
  }
  expect(fake.sent).toHaveLength(3)
})

test('a post that is not found after a broken connection stays ambiguous', async () => {
  const { fake } = harness
  fake.say({ text: 'somebody wrote the same' })
  fake.fail({ fault: 'reset' }, { matches: isPost })
  const failure = await harness
    .channel()
    .send(to, message('somebody wrote the same'), signal)
    .catch((error: unknown) => error)
  expect(failure).toMatchObject({ code: 'upstream' })
  expect(fake.sent).toEqual([])
})

test('the server answers a repeat within 30 seconds with the post that exists', async () => {
  const { fake, host } = harness
  const channel = harness.channel()
  const first = await channel.send(to, message('once'), signal)
  expect(await channel.send(to, message('once'), signal)).toEqual(first)
  await host.advance(31_000)
  expect(await channel.send(to, message('once'), signal)).not.toEqual(first)
  expect(channel.limits.dedupesClientIds).toBeUndefined()
  expect(fake.sent).toHaveLength(2)
})

test('a text of a model notifies no one', async () => {
  const { fake } = harness
  await harness.channel().send(to, message('@all, @Channel and @here: ask @ada, mail ada@example.org'), signal)
  expect(fake.sent[0]?.message).toBe('@\u200ball, @\u200bChannel and @\u200bhere: ask @\u200bada, mail ada@example.org')
})

test('a text of the maximum length with mentions is accepted', async () => {
  const { fake } = harness
  const text = '@all '.repeat(TEXT_MAX).slice(0, TEXT_MAX)
  await harness.channel().send(to, message(text), signal)
  expect([...(fake.sent[0]?.message ?? '')]).toHaveLength(TEXT_MAX)
  expect(fake.sent[0]?.message).not.toContain('@')
})

test('buttons are reactions: pressing one is a press, and removing them takes the reactions away', async () => {
  const { fake } = harness
  const listening = await harness.connect()
  const sent = await listening.channel.send(to, message('May it?', { buttons: BUTTONS }), signal)
  const post = () => fake.posts.get(sent.id)
  expect(post()?.message).toBe('May it?\n\n:white_check_mark: Approve   :x: Reject')
  expect(post()?.metadata.reactions?.map(({ emoji_name }) => emoji_name)).toEqual(['white_check_mark', 'x'])
  fake.react(sent.id, 'thumbsup')
  fake.react(sent.id, 'x', { from: MATTERMOST_OTHER_USER })
  await receives(listening, '')
  expect(listening.received[0]).toMatchObject({
    sender: MATTERMOST_OTHER_USER,
    to: { to: MATTERMOST_CHANNEL, thread: sent.id },
    pressed: { message: sent.id, value: 'reject:1' },
  })
  await listening.channel.update?.(to, sent, message('Rejected.', { buttons: [] }), signal)
  expect(post()?.message).toBe('Rejected.')
  expect(post()?.metadata.reactions?.map(({ user_id }) => user_id)).toEqual([MATTERMOST_USER, MATTERMOST_OTHER_USER])
  fake.react(sent.id, 'white_check_mark')
  fake.say({ text: 'after' })
  await receives(listening, '', 'after')
})

test('a reaction to a post of a person is not a press, even if the post claims to have buttons', async () => {
  const { fake } = harness
  const listening = await harness.connect()
  const forged = fake.say({ text: 'forged', props: { sluice_buttons: { x: 'reject:1' } } })
  fake.react(forged, 'x')
  fake.say({ text: 'after' })
  await receives(listening, 'forged', 'after')
})

test('a prompt is sent although its reactions are refused', async () => {
  const { fake, host } = harness
  fake.fail(
    { fault: 'status', status: 403, body: { id: 'api.context.permissions.app_error', message: 'No.' } },
    { matches: ({ path }) => path.endsWith('/reactions') },
  )
  await harness.channel().send(to, message('May it?', { buttons: BUTTONS }), signal)
  expect(fake.sent).toHaveLength(1)
  expect(JSON.stringify(host.logs)).toContain('no reactions could be added')
})

test('files are uploaded and posted with the text', async () => {
  const { fake } = harness
  const attachments = [
    { kind: 'file' as const, name: 'a.txt', mime: 'text/plain', source: { bytes: new TextEncoder().encode('first') } },
    { kind: 'image' as const, name: 'b.png', mime: 'image/png', source: { bytes: new Uint8Array([1, 2]) } },
  ]
  await harness.channel().send(to, message('two files', { attachments }), signal)
  const [sent] = fake.sent
  expect(sent?.metadata.files?.map(({ name, mime_type }) => [name, mime_type])).toEqual([
    ['a.txt', 'text/plain'],
    ['b.png', 'image/png'],
  ])
  expect(new TextDecoder().decode(fake.bytesOf(sent?.file_ids[0] ?? ''))).toBe('first')
})

test('a failed upload can be repeated, and an empty file is refused', async () => {
  const { fake } = harness
  const channel = harness.channel()
  const file = (bytes: Uint8Array) => [{ kind: 'file' as const, name: 'a.txt', source: { bytes } }]
  fake.fail({ fault: 'lost' }, { matches: ({ path }) => path.endsWith('/files') })
  const first = channel.send(to, message('a', { attachments: file(new Uint8Array([1])) }), signal)
  await expect(first).rejects.toMatchObject({ code: 'unavailable' })
  const second = channel.send(to, message('b', { attachments: file(new Uint8Array()) }), signal)
  await expect(second).rejects.toMatchObject({ code: 'invalid_request' })
  expect(fake.sent).toEqual([])
})

test('a file of a message is downloaded with the token, within the limit', async () => {
  const { fake } = harness
  const listening = await harness.connect()
  const id = fake.addFile({ name: 'note.txt', mime: 'text/plain; charset=utf-8', bytes: new TextEncoder().encode('content') })
  fake.say({ text: '', files: [id] })
  await until(() => expect(listening.received).toHaveLength(1))
  const [attachment] = listening.received[0]?.attachments ?? []
  expect(attachment).toEqual({ kind: 'file', name: 'note.txt', mime: 'text/plain', source: { id } })
  if (!attachment) throw new Error('no attachment')
  const media = await listening.channel.fetchMedia?.(attachment, { bytesMax: 100, signal })
  expect(new TextDecoder().decode(media?.bytes)).toBe('content')
  await expect(listening.channel.fetchMedia?.(attachment, { bytesMax: 3, signal })).rejects.toMatchObject({ code: 'too_large' })
  const elsewhere = { ...attachment, source: { url: 'https://example.org/' } }
  await expect(listening.channel.fetchMedia?.(elsewhere, { bytesMax: 3, signal })).rejects.toMatchObject({ code: 'invalid_request' })
  const gone = { ...attachment, source: { id: idOf('f', 99) } }
  await expect(listening.channel.fetchMedia?.(gone, { bytesMax: 100, signal })).rejects.toMatchObject({ code: 'invalid_request' })
})

test('a message is acknowledged by a reaction, unless the configuration says no', async () => {
  const { fake } = harness
  const id = fake.say({ text: 'question' })
  const inbound = { id, account: '', sender: MATTERMOST_USER, to, text: 'question' }
  await harness.channel().acknowledge?.(inbound, signal)
  await harness.channel().acknowledge?.(inbound, signal)
  expect(fake.posts.get(id)?.metadata.reactions).toMatchObject([{ user_id: MATTERMOST_BOT.id, emoji_name: 'eyes' }])
  expect(harness.channel({ ack_reactions: false }).acknowledge).toBeUndefined()
})

test('typing is shown in the thread', async () => {
  const root = harness.fake.say({ text: 'question' })
  await harness.channel().typing?.({ ...to, thread: root }, signal)
  await harness.channel().typing?.({ to: MATTERMOST_DIRECT }, signal)
  expect(harness.fake.typing).toEqual([{ channel_id: MATTERMOST_CHANNEL, parent_id: root }, { channel_id: MATTERMOST_DIRECT }])
})

test('an error names the server’s reason without its details and without the token', async () => {
  const failure = await harness
    .channel()
    .send({ to: idOf('c', 99) }, message('nowhere'), signal)
    .catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(AppError)
  expect(failure).toMatchObject({ code: 'forbidden', message: expect.stringContaining('api.context.permissions.app_error') })
  expect(String(failure)).not.toContain('internal detail')
  expect(String(failure)).not.toContain(MATTERMOST_TOKEN)
})
