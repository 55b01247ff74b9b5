/**
 * Parses events; see https://bot.q.qq.com/wiki/develop/api-v2/autogen/event/c2c_message_create.html, group_at_message_create.html and
 * interaction_create.html there. Both ways of receiving deliver the same events.
 */
import { list, type Members, members, text, textAt } from '@sluice/kit/foreign-json'
import { attachmentKind } from '@sluice/kit/media-type'
import type { Attachment, Inbound } from '@sluice/sdk/webhook'

export interface ParseOptions {
  /** The AppID of the bot. */
  readonly account: string
}

const ATTACHMENTS_MAX = 20

/** Returns the message or the pressed button of an event as a list of one; empty for any other event. */
export function parseEvent(type: string, data: unknown, options: ParseOptions): Inbound[] {
  const event = members(data)
  if (type === 'C2C_MESSAGE_CREATE')
    return message(event, `user:${textAt(event, 'author.user_openid')}`, textAt(event, 'author.user_openid'), options)
  if (type === 'GROUP_AT_MESSAGE_CREATE')
    return message(event, `group:${text(event.group_openid)}`, textAt(event, 'author.member_openid'), options)
  return type === 'INTERACTION_CREATE' ? press(event, options) : []
}

function message(event: Members, to: string, sender: string, { account }: ParseOptions): Inbound[] {
  const id = text(event.id)
  if (id === '' || sender === '' || to.endsWith(':') || members(event.author).bot === true) return []
  const files = list(event.attachments).slice(0, ATTACHMENTS_MAX).map(members)
  const spoken = files.map((file) => text(file.asr_refer_text).trim()).filter(Boolean)
  const words = [text(event.content).trim(), ...spoken].filter(Boolean).join('\n')
  // QQ recognises speech itself, so a recording is needed only without its words.
  const attachments = files.filter((file) => text(file.asr_refer_text).trim() === '').flatMap(attachmentOf)
  if (words === '' && attachments.length === 0) return []
  const sentAtMs = timeOf(event.timestamp)
  return [
    {
      id,
      account,
      sender,
      to: { to, replyTo: id, ...(sentAtMs !== undefined && { more: { msg: id, atMs: String(sentAtMs) } }) },
      text: words,
      ...(attachments.length > 0 && { attachments }),
      ...(sentAtMs !== undefined && { sentAtMs }),
    },
  ]
}

/** `content_type` is a media type, or the word `voice` or `file`. */
function attachmentOf({ url, voice_wav_url, filename, content_type }: Members): Attachment[] {
  const type = text(content_type).toLowerCase()
  const address = text(voice_wav_url) || text(url)
  if (address === '') return []
  const kind = type === 'voice' ? 'audio' : attachmentKind(type)
  const mime = /^\w+\/[\w.+-]+$/.test(type) ? type : undefined
  return [
    { kind, name: text(filename) || kind, ...(mime && { mime }), source: { url: address.startsWith('//') ? `https:${address}` : address } },
  ]
}

/** The id of a button names the message that has it, because the event does not. See `keyboard` in `send.ts`. */
function press(event: Members, { account }: ParseOptions): Inbound[] {
  const id = text(event.id)
  const resolved = members(members(event.data).resolved)
  const group = text(event.group_openid)
  const sender = text(event.group_member_openid) || text(event.user_openid)
  const [, button] = /^(.{1,64})\.\d{1,2}$/.exec(text(resolved.button_id)) ?? []
  const value = text(resolved.button_data)
  if (id === '' || sender === '' || button === undefined || value === '') return []
  const sentAtMs = timeOf(event.timestamp)
  return [
    {
      id,
      account,
      sender,
      to: { to: group === '' ? `user:${sender}` : `group:${group}` },
      text: '',
      pressed: { message: button, value },
      ...(sentAtMs !== undefined && { sentAtMs }),
    },
  ]
}

function timeOf(value: unknown): number | undefined {
  const atMs = typeof value === 'number' ? value * 1000 : Date.parse(text(value))
  return Number.isSafeInteger(atMs) && atMs > 0 ? atMs : undefined
}
