/** Messages of textrelay: signed with a timestamp, and the only platform that drops repeated replies. */
import type { CrashKind, PostedRequest } from '@sluice/testkit/crash-kind'
import { startTextrelayFake, TEXTRELAY_PHONE, textrelaySignatures } from './fake.ts'
import { sectionOf } from './section.ts'

const SECRET = `whsec_${Buffer.from('textrelay-signing-key-01').toString('base64')}`
const SENDERS = ['+15550200001', '+15550200002', '+15550200003', '+15550200004'] as const

interface EventParts {
  /** The id of the message. */
  readonly id: string
  readonly sender: string
  readonly event: string
  readonly more: object
}

export async function crashKind(): Promise<CrashKind> {
  const chatOf = (sender: string): string => `chat-${sender.slice(-1)}`
  const fake = await startTextrelayFake({ chats: Object.fromEntries(SENDERS.map((sender) => [chatOf(sender), sender])) })
  const requestOf = (event_type: string, { id, sender, event, more }: EventParts): PostedRequest => {
    const body = JSON.stringify({
      api_version: 'v3',
      webhook_version: '2026-02-03',
      event_type,
      event_id: event,
      data: {
        id,
        direction: 'inbound',
        chat: { id: chatOf(sender), is_group: false, owner_handle: { handle: TEXTRELAY_PHONE, is_me: true } },
        sender_handle: { handle: sender, is_me: false },
        ...more,
      },
    })
    const headers = { 'content-type': 'application/json', ...textrelaySignatures(body, { secret: SECRET, id: event, atMs: Date.now() }) }
    return { path: '/textrelay', headers, body }
  }
  return {
    fake,
    section: { ...sectionOf(fake), from_phone: TEXTRELAY_PHONE, signing_secret: SECRET },
    senders: SENDERS,
    isPrivate: true,
    dropsRepeats: true,
    write: ({ mark }) => `message-${mark}`,
    request: ([{ id, sender, text }]) =>
      requestOf('message.received', { id, sender, event: `event-of-${id}`, more: { parts: [{ type: 'text', value: text }] } }),
    edit: ({ id }, { mark, sender, text }) => ({
      id: mark,
      request: requestOf('message.edited', {
        id,
        sender,
        event: mark,
        more: { edited_at: new Date().toISOString(), part: { index: 0, text } },
      }),
    }),
    files: () => fake.sent.flatMap(({ files }) => files.map(({ name, bytes }) => ({ name, size: bytes.length }))),
    delivered: () => fake.sent.map(({ text }) => text),
  }
}
