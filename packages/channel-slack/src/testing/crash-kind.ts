/** Messages of slack: each sender writes in a direct conversation, and its history has what was not acknowledged on a connection. */
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { SLACK_APP_TOKEN, SLACK_BOT, SLACK_BOT_TOKEN, startSlackFake } from './fake.ts'

const SENDERS = ['UADA', 'UBOB', 'UCLEO', 'UDAN'] as const
const conversationOf = (sender: string): string => sender.replace('U', 'D')
const GROUP = 'CGROUP'
const CONVERSATIONS = [...SENDERS.map(conversationOf), GROUP]

export async function crashKind(): Promise<CrashKind> {
  const fake = await startSlackFake({ channels: CONVERSATIONS, nowMs: Date.now })
  return {
    fake,
    section: {
      bot_token: SLACK_BOT_TOKEN,
      app_token: SLACK_APP_TOKEN,
      allowed_users: ['*'],
      channel_ids: CONVERSATIONS,
      api_url: fake.apiUrl,
    },
    senders: SENDERS,
    isPulled: true,
    isReady: () => fake.socket.opened > 0,
    write({ sender, text }) {
      const channel = conversationOf(sender)
      return `${channel}:${fake.say({ user: sender, channel, text })}`
    },
    mention: ({ sender, text }) => ({ id: `${GROUP}:${fake.say({ user: sender, channel: GROUP, text: `<@${SLACK_BOT.user}> ${text}` })}` }),
    edit({ id }, { mark, sender, text }) {
      const [channel = '', ts = ''] = id.split(':')
      fake.edit(channel, ts, { user: sender, text })
      return { id: mark }
    },
    remove({ id }, { mark }) {
      const [channel = '', ts = ''] = id.split(':')
      fake.remove(channel, ts)
      return { id: mark }
    },
    textIn: ({ body }) => new URLSearchParams(body.toString()).get('text') ?? '',
    files: () =>
      CONVERSATIONS.flatMap((channel) => fake.messages(channel))
        .filter(({ user }) => user === SLACK_BOT.user)
        .flatMap(({ files = [] }) => files as readonly { readonly id: string; readonly name: string }[])
        .map(({ id, name }) => ({ name, size: fake.files.bytes(id)?.length ?? 0 })),
    delivered: () =>
      CONVERSATIONS.flatMap((channel) => fake.messages(channel))
        .filter(({ user }) => user === SLACK_BOT.user)
        .map(({ text }) => text),
  }
}
