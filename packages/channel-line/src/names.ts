/** Looks up the display names of people, of whom a webhook has only the ids. */
import { pathSegment, SenderNames } from '@sluice/kit'
import { members, text } from '@sluice/kit/foreign-json'
import { isAllowed } from '@sluice/sdk'
import type { LineApi } from './api.ts'

/** Sources: "Get profile" and "Get group chat member profile" of https://developers.line.biz/en/reference/messaging-api/ */
export const senderNames = (api: LineApi, allow: readonly string[]): SenderNames =>
  new SenderNames({
    host: api.host,
    channel: 'line',
    isAllowed: (sender) => isAllowed(allow, sender),
    async read({ sender, to }, signal) {
      const user = pathSegment(sender)
      // Only the conversation tells the names of people who have not added the bot as a friend.
      const [, kind] = /^([CR])/.exec(to.to) ?? []
      const place = kind === undefined ? undefined : `/v2/bot/${kind === 'C' ? 'group' : 'room'}/${pathSegment(to.to)}/member/${user}`
      return text(members(await api.get((place ?? `/v2/bot/profile/${user}`) as `/${string}`, signal)).displayName)
    },
  })
