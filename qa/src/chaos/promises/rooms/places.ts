/** The rooms of the play: three groups of Telegram and two channels of Slack. The same people are in all rooms of a platform. */
import { SLACK_APP_TOKEN, SLACK_BOT, SLACK_BOT_TOKEN, startSlackFake } from '@sluice/channel-slack/testing'
import { startTelegramFake, TELEGRAM_TOKEN } from '@sluice/channel-telegram/testing'
import type { FakeProvider } from '@sluice/testkit/fake-provider'
import { sectionToml } from '../../../daemons/section-toml.ts'

export interface RoomPlace {
  readonly channel: string
  readonly chat: string
  readonly people: readonly [string, ...string[]]
  /**
   * Whether all people write into one conversation, which reads what it overhears once. On Slack, each message to the bot begins a thread, which
   * has the last messages of the room.
   */
  readonly overhears: boolean
  /** The person who writes only messages that are stopped. */
  readonly stopper: string
  /** The person whose `/stop` ends the messages of all. */
  readonly operator: string
  isReady(): boolean
  /** Writes a message. Returns its id in the inbox. */
  say(person: string, text: string, isMention: boolean): string
  /** The texts of the bot, oldest first. */
  delivered(): readonly string[]
}

export interface RoomPlaces {
  readonly rooms: readonly [RoomPlace, ...RoomPlace[]]
  readonly fakes: readonly FakeProvider[]
  readonly config: string
}

const TELEGRAM_ROOMS = [-100_201, -100_202, -100_203] as const
const SLACK_ROOMS = ['CONE', 'CTWO'] as const
/** How long a message waits for the next one of its person. */
const BATCH_MS = 300

export async function startPlaces(): Promise<RoomPlaces> {
  const [telegram, slack] = await Promise.all([
    startTelegramFake({ chats: TELEGRAM_ROOMS.map((id) => ({ id, type: 'supergroup' })) }),
    startSlackFake({ channels: [...SLACK_ROOMS], nowMs: Date.now }),
  ])
  const name = `@${telegram.bot.username}`
  const groups = TELEGRAM_ROOMS.map(
    (chat): RoomPlace => ({
      channel: 'telegram',
      chat: String(chat),
      people: ['2001', '2002', '2003'],
      overhears: true,
      stopper: '2009',
      operator: '2008',
      isReady: () => true,
      say(person, text, isMention) {
        const isCommand = text.startsWith('/')
        const written = isCommand ? `${text}${name}` : isMention ? `${name} ${text}` : text
        const entity = isCommand
          ? { type: 'bot_command', offset: 0, length: written.length }
          : { type: 'mention', offset: 0, length: name.length }
        const said = telegram.say({ chat, from: { id: Number(person) }, text: written, extra: { entities: isMention ? [entity] : [] } })
        return `${said.chat}:${said.id}`
      },
      delivered: () => telegram.sent(chat).map(({ text }) => text),
    }),
  )
  const channels = SLACK_ROOMS.map(
    (channel): RoomPlace => ({
      channel: 'slack',
      chat: channel,
      people: ['UADA', 'UBOB', 'UCLEO'],
      overhears: false,
      stopper: 'UEVE',
      operator: 'UOPS',
      isReady: () => slack.socket.opened > 0,
      say: (user, text, isMention) => `${channel}:${slack.say({ user, channel, text: isMention ? `<@${SLACK_BOT.user}> ${text}` : text })}`,
      delivered: () =>
        slack
          .messages(channel)
          .filter(({ user }) => user === SLACK_BOT.user)
          .map(({ text }) => text),
    }),
  )
  const [first, ...rest] = [...groups, ...channels]
  if (!first) throw new Error('There are no rooms.')
  const pace = { batch_ms: BATCH_MS, steering: 'steer', room_session: 'shared', mention_only: true }
  const telegramSection = { bot_token: TELEGRAM_TOKEN, api_url: telegram.url, allowed_users: ['*', '2008'], operators: ['2008'], ...pace }
  const slackSection = {
    bot_token: SLACK_BOT_TOKEN,
    app_token: SLACK_APP_TOKEN,
    api_url: slack.apiUrl,
    allowed_users: ['*', 'UOPS'],
    operators: ['UOPS'],
    channel_ids: [...SLACK_ROOMS],
    ...pace,
  }
  return {
    rooms: [first, ...rest],
    fakes: [telegram, slack],
    config: `${sectionToml('telegram', telegramSection)}\n${sectionToml('slack', slackSection)}`,
  }
}
