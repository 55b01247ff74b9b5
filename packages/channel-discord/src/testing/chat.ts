/** The Discord fake as a `Chat`. */

import type { Chat, Shown } from '@sluice/testkit/chat'
import type { ProviderRequest } from '@sluice/testkit/fake-provider'
import {
  DISCORD_CHANNEL,
  DISCORD_DIRECT,
  DISCORD_OTHER_CHANNEL,
  DISCORD_TOKEN,
  DISCORD_USER,
  type DiscordMessage,
  startDiscordFake,
} from './fake.ts'

const PEOPLE = { ada: DISCORD_USER, bob: '400000000000000002', eve: '400000000000000666' }
const MESSAGES = /\/channels\/\d+\/messages$/
const MESSAGE = /\/channels\/\d+\/messages\/\d+$/
/** The close code after which a client may resume its session. */
const RESUMABLE = 4000

/** `nowMs` is the daemon's clock, by which it decides whether a message is too old. */
export async function chat(nowMs: () => number): Promise<Chat> {
  const fake = await startDiscordFake({ nowMs })
  const places = { talk: DISCORD_OTHER_CHANNEL, notify: DISCORD_CHANNEL, other: DISCORD_DIRECT }
  const files = new Map<string, string>()
  const contents = async (): Promise<void> => {
    for (const { attachments } of fake.sent)
      for (const { url } of attachments) if (!files.has(url)) files.set(url, await (await fetch(url)).text())
  }
  const shown = (message: DiscordMessage): Shown => {
    if (message.attachments.some(({ url }) => !files.has(url))) void contents()
    return {
      id: message.id,
      place: message.channel_id,
      text: message.content,
      ...(message.message_reference && { replyTo: message.message_reference.message_id }),
      buttons: message.components.flatMap((row) =>
        (row as { components: { custom_id: string }[] }).components.map((each) => each.custom_id),
      ),
      files: message.attachments.map(({ filename, url }) => ({ name: filename, text: files.get(url) ?? '' })),
      isEdited: typeof message.edited_timestamp === 'string',
    }
  }
  const calls =
    (method: string, path: RegExp) =>
    (request: ProviderRequest): boolean =>
      request.method === method && path.test(request.path)
  return {
    name: 'discord',
    answersIn: 'quote',
    people: PEOPLE,
    places,
    config: {
      bot_token: DISCORD_TOKEN,
      allowed_users: [PEOPLE.ada, PEOPLE.bob],
      notification_channel_id: places.notify,
      api_url: fake.apiUrl,
    },
    get isConnected() {
      return fake.connected === 1
    },
    say: ({ text, from = PEOPLE.ada, place = places.talk, replyTo }) =>
      fake.say({ text, author: from, channel: place, ...(replyTo !== undefined && { replyTo }) }),
    press: ({ message, value, from = PEOPLE.ada }) => void fake.press({ message, value, user: from }),
    sent: () => fake.sent.map(shown),
    threadOf: ({ id, place }) => (fake.threads.has(id) ? { place: id } : { place, replyTo: id }),
    drop: () => fake.kick(RESUMABLE),
    failSend: (fault, times = 1) => fake.fail(fault, { times, matches: calls('POST', MESSAGES) }),
    failEdit: (fault, times = 1) => fake.fail(fault, { times, matches: calls('PATCH', MESSAGE) }),
    get requests() {
      return fake.requests
    },
    get typing() {
      return fake.typing.length
    },
    close: () => fake.close(),
  }
}
