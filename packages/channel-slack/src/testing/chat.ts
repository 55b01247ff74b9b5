/** The Slack fake as a `Chat`. */

import type { Chat, Shown } from '@sluice/testkit/chat'
import type { ProviderRequest } from '@sluice/testkit/fake-provider'
import { SLACK_APP_TOKEN, SLACK_BOT, SLACK_BOT_TOKEN, startSlackFake } from './fake.ts'
import type { SlackMessage } from './fake-conversations.ts'

const PEOPLE = { ada: 'UADA', bob: 'UBOB', eve: 'UEVE' }
const PLACES = { talk: 'C1', notify: 'C2', other: 'D1' }

/** Starts the fake with three conversations. */
export async function chat(): Promise<Chat> {
  const fake = await startSlackFake({ channels: Object.values(PLACES) })
  let presses = 0
  const placeOf = (id: string): string =>
    Object.values(PLACES).find((place) => fake.messages(place).some(({ ts }) => ts === id)) ?? PLACES.talk
  const shown =
    (place: string) =>
    ({ ts, text, thread_ts, blocks = [], files = [], edited }: SlackMessage): Shown => ({
      id: ts,
      place,
      text: blocks.length === 0 ? text : textIn(blocks),
      ...(thread_ts !== undefined && { thread: thread_ts }),
      buttons: buttonsIn(blocks),
      files: files.map((file) => {
        const { id, name } = file as { id: string; name: string }
        return { name, text: Buffer.from(fake.files.bytes(id) ?? []).toString() }
      }),
      isEdited: edited !== undefined,
    })
  const calls =
    (...methods: readonly string[]) =>
    ({ path }: ProviderRequest): boolean =>
      methods.some((method) => path.endsWith(`/${method}`))
  return {
    name: 'slack',
    answersIn: 'thread',
    people: PEOPLE,
    places: PLACES,
    config: {
      bot_token: SLACK_BOT_TOKEN,
      app_token: SLACK_APP_TOKEN,
      allowed_users: [PEOPLE.ada, PEOPLE.bob],
      notification_channel_id: PLACES.notify,
      api_url: fake.apiUrl,
    },
    get isConnected() {
      return fake.socket.open === 1
    },
    say: ({ text, from = PEOPLE.ada, place = PLACES.talk, thread, replyTo }) => {
      const parent = thread ?? replyTo
      return fake.say({ text, user: from, channel: place, ...(parent !== undefined && { thread: parent }) })
    },
    // The fake's own `press` accepts only buttons that exist.
    press({ message, value, from = PEOPLE.ada }) {
      const channel = placeOf(message)
      const container = { type: 'message', message_ts: message, channel_id: channel, is_ephemeral: false }
      const action = { type: 'button', action_id: 'press-0', block_id: 'b1', value, action_ts: `${1_767_300_000 + presses++}.000200` }
      const payload = { type: 'block_actions', user: { id: from }, container, channel: { id: channel }, actions: [action] }
      fake.socket.emit({ type: 'interactive', payload })
    },
    sent: () =>
      Object.values(PLACES)
        .flatMap((place) =>
          fake
            .messages(place)
            .filter(({ user }) => user === SLACK_BOT.user)
            .map(shown(place)),
        )
        .toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    threadOf: ({ id, place, thread }) => ({ place, thread: thread ?? id }),
    drop: () => fake.socket.cut('reset'),
    failSend: (fault, times = 1) => fake.fail(fault, { times, matches: calls('chat.postMessage', 'files.completeUploadExternal') }),
    failEdit: (fault, times = 1) => fake.fail(fault, { times, matches: calls('chat.update') }),
    get requests() {
      return fake.requests
    },
    get typing() {
      return fake.statuses.length
    },
    close: () => fake.close(),
  }
}

interface Block {
  readonly type?: string
  readonly text?: { readonly text?: string }
  readonly elements?: readonly { readonly value?: string; readonly elements?: readonly { readonly text?: string }[] }[]
}

const textIn = (blocks: readonly unknown[]): string =>
  blocks.map((block) => (block as Block).text?.text ?? richTextIn(block as Block)).join('')
const richTextIn = ({ type, elements = [] }: Block): string =>
  type === 'rich_text' ? elements.map((container) => (container.elements ?? []).map(({ text = '' }) => text).join('')).join('\n') : ''
const buttonsIn = (blocks: readonly unknown[]): string[] =>
  blocks.flatMap((block) => ((block as Block).elements ?? []).flatMap(({ value }) => value ?? []))
