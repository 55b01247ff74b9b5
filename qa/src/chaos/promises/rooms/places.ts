/** The rooms of the play: four groups of Telegram and two channels of Slack. The same people are in all rooms of a platform. */
import { SLACK_APP_TOKEN, SLACK_BOT, SLACK_BOT_TOKEN, startSlackFake } from '@sluice/channel-slack/testing'
import { startTelegramFake, TELEGRAM_TOKEN } from '@sluice/channel-telegram/testing'
import { type RoomRule, roomId } from '@sluice/sdk'
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
  /** Whether the agent reads what is not to the bot at once, and may be silent. */
  readonly judges?: true
  /** The person who writes only messages that are stopped. */
  readonly stopper: string
  /** The person whose `/stop` ends the messages of all. */
  readonly operator: string
  /** The person who may have one turn at a time. */
  readonly limited?: string
  isReady(): boolean
  /** Writes a message. Returns its id in the inbox. */
  say(person: string, text: string, isMention: boolean): string
  /** The texts of the bot, oldest first. */
  delivered(): readonly string[]
}

export interface RoomPlaces {
  readonly rooms: readonly [RoomPlace, ...RoomPlace[]]
  /** The direct chat of the limited person. */
  readonly direct: RoomPlace
  /** The rules of rooms, by their ids in the API. */
  readonly rules: ReadonlyMap<string, RoomRule>
  readonly fakes: readonly FakeProvider[]
  /** The sections of the channels, as TOML. `limit` names the key that gives the limited person one turn at a time. */
  config(limit: 'turns_in_flight' | 'turns_running'): string
}

const TELEGRAM_ROOMS = [-100_201, -100_202, -100_203, -100_204] as const
const JUDGED_ROOM = -100_204
const OPERATOR = '2008'
const LIMITED = '2007'
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
      ...(chat === JUDGED_ROOM && { judges: true as const }),
      stopper: '2009',
      operator: OPERATOR,
      limited: LIMITED,
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
  const direct: RoomPlace = {
    channel: 'telegram',
    chat: LIMITED,
    people: [LIMITED],
    overhears: false,
    stopper: LIMITED,
    operator: OPERATOR,
    isReady: () => true,
    say(person, text) {
      const said = telegram.say({ from: { id: Number(person) }, text })
      return `${said.chat}:${said.id}`
    },
    delivered: () => telegram.sent(Number(LIMITED)).map(({ text }) => text),
  }
  const account = String(telegram.bot.id)
  const rules = TELEGRAM_ROOMS.map((chat): [string, RoomRule] => [
    roomId({ channel: 'telegram', account, conversation: String(chat) }),
    { respond: chat === JUDGED_ROOM ? 'judge' : 'mention' },
  ])
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
  const pace = { batch_ms: BATCH_MS, steering: 'steer', room_session: 'shared' }
  const telegramSection = {
    bot_token: TELEGRAM_TOKEN,
    api_url: telegram.url,
    allowed_users: ['*', OPERATOR, LIMITED],
    operators: [OPERATOR],
    ...pace,
  }
  const slackSection = {
    bot_token: SLACK_BOT_TOKEN,
    app_token: SLACK_APP_TOKEN,
    api_url: slack.apiUrl,
    allowed_users: ['*', 'UOPS'],
    operators: ['UOPS'],
    channel_ids: [...SLACK_ROOMS],
    mention_only: true,
    ...pace,
  }
  return {
    rooms: [first, ...rest],
    direct,
    rules: new Map(rules),
    fakes: [telegram, slack],
    config: (limit) =>
      [
        sectionToml('telegram', telegramSection),
        // Other people have no share either, because whoever has used it up is passed.
        `[channels_config.telegram.limits]\n${limit} = 1\nstrangers.turns_running = 0\n`,
        sectionToml('slack', slackSection),
        '[channels_config.slack.limits]\nstrangers.turns_running = 0\n',
      ].join('\n'),
  }
}
