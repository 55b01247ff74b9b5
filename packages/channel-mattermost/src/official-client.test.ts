/** The fake and the channel against `@mattermost/client`, the official client, which another program wrote and checks independently. */
import { Client4, WebSocketClient, type WebSocketMessage } from '@mattermost/client'
import type { Post } from '@mattermost/types/posts'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { WebSocket } from 'ws'
import { MATTERMOST_CHANNEL, MATTERMOST_USER, MATTERMOST_USER_TOKEN } from './testing/fake.ts'
import { mattermostHarness, receives, until } from './testing/harness.ts'

const harness = mattermostHarness()
const { signal } = new AbortController()
const closes: (() => void)[] = []
// The client writes its state to the console.
beforeEach(() => void vi.spyOn(console, 'log').mockImplementation(() => undefined))
afterEach(() => {
  for (const close of closes.splice(0)) close()
  vi.restoreAllMocks()
})

/** A person who uses the official client. */
function person(): Client4 {
  const client = new Client4()
  client.setUrl(harness.fake.url)
  client.setToken(MATTERMOST_USER_TOKEN)
  return client
}

/** The official client assumes the globals of a browser. */
function socketOf(): { readonly events: WebSocketMessage[]; readonly missed: () => number; readonly socket: WebSocketClient } {
  const authorization = `Bearer ${MATTERMOST_USER_TOKEN}`
  const socket = new WebSocketClient({
    newWebSocketFn: (url) => new WebSocket(url, { headers: { authorization } }) as unknown as globalThis.WebSocket,
    minWebSocketRetryTime: 10,
    reconnectJitterRange: 1,
    clientPingInterval: 60_000,
  })
  const events: WebSocketMessage[] = []
  let missed = 0
  socket.addMessageListener((event) => events.push(event))
  socket.addMissedMessageListener(() => {
    missed += 1
  })
  socket.initialize(`${harness.fake.url.replace('http', 'ws')}/api/v4/websocket`, MATTERMOST_USER_TOKEN)
  closes.push(() => socket.close())
  return { events, missed: () => missed, socket }
}

const postsIn = (events: readonly WebSocketMessage[], name: string): Post[] =>
  events.filter(({ event }) => event === name).map(({ data }) => JSON.parse((data as { post: string }).post) as Post)

test('a person writes, replies, edits, deletes and reacts with the official client', async () => {
  const listening = await harness.connect()
  const client = person()
  const { id: me } = await client.getMe()
  expect(me).toBe(MATTERMOST_USER)
  const root = await client.createPost({ channel_id: MATTERMOST_CHANNEL, message: '@sluice hello' })
  await client.createPost({ channel_id: MATTERMOST_CHANNEL, message: 'and this', root_id: root.id })
  await harness.host.advance(1000)
  await client.patchPost({ id: root.id, message: '@sluice hello again' })
  const buttons = [{ label: 'Approve', value: 'approve:1', tone: 'good' as const }]
  const prompt = await listening.channel.send({ to: MATTERMOST_CHANNEL }, { text: 'May it?', buttons, clientId: 'a' }, signal)
  await client.addReaction(me, prompt.id, 'white_check_mark')
  await client.deletePost(root.id)
  await receives(listening, 'hello', 'and this', 'hello again', '', '')
  expect(listening.received.map(({ changes, pressed }) => changes?.what ?? pressed?.value)).toEqual([
    undefined,
    undefined,
    'edited',
    'approve:1',
    'deleted',
  ])
})

test('a file that the official client uploads arrives', async () => {
  const listening = await harness.connect()
  const form = new FormData()
  form.append('channel_id', MATTERMOST_CHANNEL)
  form.append('files', new Blob(['content'], { type: 'text/plain' }), 'note.txt')
  const { file_infos: infos } = await person().uploadFile(form)
  await person().createPost({ channel_id: MATTERMOST_CHANNEL, message: 'look', file_ids: infos.map(({ id }) => id) })
  await receives(listening, 'look')
  const [attachment] = listening.received[0]?.attachments ?? []
  if (!attachment) throw new Error('no attachment')
  const media = await listening.channel.fetchMedia?.(attachment, { bytesMax: 100, signal })
  expect(new TextDecoder().decode(media?.bytes)).toBe('content')
})

test('the official client sees posts and edits of the channel, live and as it reads them', async () => {
  const watcher = socketOf()
  await until(() => expect(watcher.events.map(({ event }) => event)).toEqual(['hello']))
  const channel = harness.channel()
  const sent = await channel.send({ to: MATTERMOST_CHANNEL }, { text: 'draft', clientId: 'a' }, signal)
  await channel.update?.({ to: MATTERMOST_CHANNEL }, sent, { text: 'final', clientId: 'a' }, signal)
  await until(() => expect(postsIn(watcher.events, 'post_edited').map(({ message }) => message)).toEqual(['final']))
  expect(postsIn(watcher.events, 'posted').map(({ message }) => message)).toEqual(['draft'])
  const { order, posts } = await person().getPostsSince(MATTERMOST_CHANNEL, 1)
  expect(order.map((id) => posts[id]).filter((post) => post?.original_id === '')).toMatchObject([{ id: sent.id, message: 'final' }])
})

test('the official client resumes on the fake as on the server, and starts over when the fake forgot it', async () => {
  const { fake } = harness
  const watcher = socketOf()
  await until(() => expect(watcher.events).toHaveLength(1))
  fake.sockets.cut('reset')
  fake.say({ text: 'meanwhile' })
  await until(() => expect(postsIn(watcher.events, 'posted').map(({ message }) => message)).toEqual(['meanwhile']))
  expect(watcher.missed()).toBe(0)
  expect(fake.sockets.resumed).toBe(1)
  fake.sockets.forgets = true
  fake.sockets.cut('reset')
  await until(() => expect(watcher.missed()).toBe(1))
})
