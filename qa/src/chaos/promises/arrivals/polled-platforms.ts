/** Platforms from which the daemon fetches messages, or whose connection it keeps. */
import { DISCORD_DIRECT, DISCORD_TOKEN, startDiscordFake } from '@sluice/channel-discord/testing'
import { SIGNAL_ACCOUNT, startSignalFake, uuidOf } from '@sluice/channel-signal/testing'
import { SLACK_APP_TOKEN, SLACK_BOT_TOKEN, startSlackFake } from '@sluice/channel-slack/testing'
import { startTelegramFake, TELEGRAM_TOKEN } from '@sluice/channel-telegram/testing'
import type { Delivered, Platform } from './platform.ts'

const GREETING_MS = 2000

export async function telegram(): Promise<Platform> {
  const fake = await startTelegramFake()
  const said = (person: string, text: string, more: { replyTo?: number; extra?: object } = {}) => {
    const { chat, id } = fake.say({ from: { id: Number(person) }, text, ...more })
    return { id: `${chat}:${id}` }
  }
  let albums = 0
  return {
    name: 'telegram',
    fake,
    section: { bot_token: TELEGRAM_TOKEN, allowed_users: ['*'], api_url: fake.url },
    people: ['2001', '2002', '2003'],
    isReady: () => true,
    text: said,
    album(person, caption, pictures, gap) {
      const album = String(++albums)
      const delivered: Delivered[] = []
      const writeAll = async (): Promise<void> => {
        for (const [at, bytes] of pictures.entries()) {
          if (at > 0) await gap()
          const file_id = fake.file(bytes, `photos/${album}-${at}.png`)
          const photo = [{ file_id, file_unique_id: file_id, width: 9, height: 9 }]
          delivered.push(said(person, '', { extra: { media_group_id: album, photo, ...(at === 0 && { caption }) } }))
        }
      }
      void writeAll()
      return delivered
    },
    quote: (person, text, { id }) => said(person, text, { replyTo: Number(id.split(':')[1]) }),
    forward: (person, text) => said(person, text, { extra: { forward_origin: { type: 'hidden_user', date: 1, sender_user_name: 'Eve' } } }),
    edit(person, text, { id }) {
      const [chat, number] = id.split(':')
      fake.edit({ chat: Number(chat), id: Number(number) }, text, { id: Number(person) })
      return { id: '' }
    },
  }
}

export async function discord(): Promise<Platform> {
  const fake = await startDiscordFake()
  const author = '400000000000000011'
  let greetedMs = Number.NEGATIVE_INFINITY
  return {
    name: 'discord',
    fake,
    section: { bot_token: DISCORD_TOKEN, allowed_users: ['*'], api_url: fake.apiUrl },
    people: [author],
    // Discord does not list the direct chats of a bot, so the daemon catches up only with the ones that it has seen.
    isReady() {
      if (fake.sent.length > 0) return true
      if (fake.happened.includes('identify') && performance.now() - greetedMs > GREETING_MS) {
        greetedMs = performance.now()
        fake.say({ author, channel: DISCORD_DIRECT, text: 'Hello' })
      }
      return false
    },
    text: (_, text) => ({ id: fake.say({ author, channel: DISCORD_DIRECT, text }) }),
    album(_, text, pictures) {
      const files = pictures.map((bytes, at) => ({ name: `picture-${at}.png`, mime: 'image/png', bytes }))
      return [{ id: fake.say({ author, channel: DISCORD_DIRECT, text, files }) }]
    },
    quote: (_, text, { id }) => ({ id: fake.say({ author, channel: DISCORD_DIRECT, text, replyTo: id }) }),
    edit(_, text, { id }) {
      fake.edit(id, { author, text, channel: DISCORD_DIRECT })
      return { id: '' }
    },
  }
}

export async function slack(): Promise<Platform> {
  const people = ['UADA', 'UBOB', 'UCLEO'] as const
  const chatOf = (user: string): string => user.replace('U', 'D')
  const fake = await startSlackFake({ channels: people.map(chatOf), nowMs: Date.now })
  return {
    name: 'slack',
    fake,
    section: {
      bot_token: SLACK_BOT_TOKEN,
      app_token: SLACK_APP_TOKEN,
      allowed_users: ['*'],
      channel_ids: people.map(chatOf),
      api_url: fake.apiUrl,
    },
    people,
    isReady: () => fake.socket.opened > 0,
    text: (user, text) => ({ id: `${chatOf(user)}:${fake.say({ user, channel: chatOf(user), text })}` }),
    album(user, text, pictures) {
      const files = pictures.map((bytes, at) => fake.files.add({ name: `picture-${at}.png`, mime: 'image/png', bytes }))
      return [{ id: `${chatOf(user)}:${fake.say({ user, channel: chatOf(user), text, files })}` }]
    },
    edit(user, text, { id }) {
      const [channel = '', ts = ''] = id.split(':')
      fake.edit(channel, ts, { user, text })
      return { id: '' }
    },
  }
}

export async function signal(): Promise<Platform> {
  const fake = await startSignalFake(Date.now)
  const sentAtMs = ({ id }: { readonly id: string }): number => Number(id.split('/')[1])
  const said = (from: string, text: string, data: object = {}) => ({ id: `${uuidOf(from)}/${fake.say({ from, text, data })}` })
  let files = 0
  return {
    name: 'signal',
    fake,
    section: { http_url: fake.url, account: SIGNAL_ACCOUNT, allowed_from: ['*'] },
    people: ['+15550300001', '+15550300002', '+15550300003'],
    isReady: () => fake.listeners > 0,
    text: said,
    album(from, text, pictures) {
      const attachments = pictures.map((bytes) => {
        const id = `file-${++files}.png`
        fake.files.set(id, bytes)
        return { id, contentType: 'image/png', filename: id, size: bytes.length }
      })
      return [said(from, text, { attachments })]
    },
    quote(from, text, quoted, words) {
      const of = { id: sentAtMs(quoted), author: from, authorNumber: from, authorUuid: uuidOf(from), text: words, attachments: [] }
      return said(from, text, { quote: of })
    },
    edit: (from, text, message) => ({ id: `${uuidOf(from)}/${fake.edit(sentAtMs(message), { from, text })}` }),
  }
}
