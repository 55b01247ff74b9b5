/** Reads the first message of a thread, because Slack does not send it along. */
import { QuotedMessages } from '@sluice/kit'
import { list, members, text } from '@sluice/kit/foreign-json'
import type { Host, Inbound } from '@sluice/sdk'
import type { SlackApi } from './api.ts'
import { type Bot, readMessage } from './parse.ts'

export const threadRoots = (host: Host, api: SlackApi, bot: Bot): QuotedMessages =>
  new QuotedMessages({
    host,
    channel: 'slack',
    async read(id, channel, signal) {
      const ts = id.slice(channel.length + 1)
      const answer = await api.call('conversations.replies', { channel, ts, limit: 1 }, { signal })
      const event = list(answer.messages)
        .map(members)
        .find((message) => message.ts === ts)
      if (!event) return undefined
      const author = { name: text(members(event.user_profile).real_name), id: text(event.user) || text(event.bot_id) }
      return { ...readMessage({ ...event, type: 'message', channel }, bot), author, isOfBot: event.user === bot.userId }
    },
  })

/** Returns the id of the first message of the thread; empty outside of threads. */
export const rootOf = ({ to }: Inbound): string => (to.thread === undefined ? '' : `${to.to}:${to.thread}`)
