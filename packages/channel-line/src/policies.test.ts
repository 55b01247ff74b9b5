/** Who may write directly and in groups. */
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { lineSection } from './config.ts'
import feature from './index.ts'
import { LINE_BOT, LINE_GROUP, LINE_USER } from './testing/fake.ts'

const STRANGER = `U${'e'.repeat(32)}`

function channelWith(changes: object) {
  const section = v.parse(lineSection.schema, { channel_access_token: 'x', allowed_users: [LINE_USER], ...changes })
  const [channel] = feature.build(testHost(), section).channels ?? []
  if (!channel?.webhook) throw new Error('The feature built no webhook')
  return { ...channel, webhook: channel.webhook }
}

/** Returns whether the channel and its allowlist accept a text, and `overheard` for one that may begin no turn. */
async function accepts(
  changes: object,
  { sender, isGroup, mentions }: { sender: string; isGroup: boolean; mentions: boolean },
): Promise<boolean | 'overheard'> {
  const { allow, webhook } = channelWith(changes)
  const event = {
    type: 'message',
    webhookEventId: 'e1',
    timestamp: 1,
    source: isGroup ? { type: 'group', groupId: LINE_GROUP, userId: sender } : { type: 'user', userId: sender },
    message: {
      id: '1',
      type: 'text',
      text: '@Bot hi',
      ...(mentions && { mention: { mentionees: [{ index: 0, length: 4, type: 'user', userId: LINE_BOT, isSelf: true }] } }),
    },
  }
  const body = new TextEncoder().encode(JSON.stringify({ destination: LINE_BOT, events: [event] }))
  const messages = await webhook.parse({ headers: {}, url: new URL('http://localhost/line'), body, receivedAtMs: 0 })
  const [message] = messages.filter(({ sender }) => allow.includes('*') || allow.includes(sender))
  return message?.overheardOnly ? 'overheard' : message !== undefined
}

const direct = { isGroup: false, mentions: false }
const mentioned = { isGroup: true, mentions: true }
const unmentioned = { isGroup: true, mentions: false }

describe.each([
  [{}, { known: true, stranger: false }, { known: true, stranger: false }, { known: 'overheard', stranger: false }],
  [{ group_policy: 'open' }, { known: true, stranger: false }, { known: true, stranger: false }, { known: true, stranger: false }],
  [{ group_policy: 'disabled' }, { known: true, stranger: false }, { known: false, stranger: false }, { known: false, stranger: false }],
  [{ dm_policy: 'open' }, { known: true, stranger: true }, { known: true, stranger: false }, { known: 'overheard', stranger: false }],
  [
    { dm_policy: 'open', group_policy: 'open' },
    { known: true, stranger: true },
    { known: true, stranger: false },
    { known: true, stranger: false },
  ],
  [
    { allowed_users: ['*'], group_policy: 'open' },
    { known: true, stranger: true },
    { known: true, stranger: true },
    { known: true, stranger: true },
  ],
  [
    { dm_policy: 'open', allowed_users: [] },
    { known: true, stranger: true },
    { known: false, stranger: false },
    { known: false, stranger: false },
  ],
])('%j', (changes, inDirect, inMention, inGroup) => {
  test.each([
    ['a direct message', direct, inDirect],
    ['a mention in a group', mentioned, inMention],
    ['a message in a group', unmentioned, inGroup],
  ])('%s', async (_what, where, expected) => {
    expect({
      known: await accepts(changes, { sender: LINE_USER, ...where }),
      stranger: await accepts(changes, { sender: STRANGER, ...where }),
    }).toEqual(expected)
  })
})
