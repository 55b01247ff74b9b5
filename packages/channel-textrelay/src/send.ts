/** Replies: into the chat the message came from, or into a new one where that is gone. */

import { callProvider, type ProviderCall, withoutTrailing } from '@sluice/kit'
import { textAt, valueAt } from '@sluice/kit/foreign-json'
import { type Address, AppError, type Outbound, type Secret, type Sent } from '@sluice/sdk'
import { isHandle } from './handle.ts'

/** The provider's code for a chat it does not know; other things it does not find are 404 as well. */
const CHAT_NOT_FOUND = 2001

export interface Api {
  readonly fetch: typeof fetch
  readonly url: string
  readonly token: Secret
  /** Our own number. */
  readonly fromPhone: string
}

/** See `Channel.send`. The provider drops a message whose `idempotency_key` it knows. */
export async function sendMessage(api: Api, to: Address, { text, clientId }: Outbound, signal: AbortSignal): Promise<Sent> {
  const message = { parts: [{ type: 'text', value: text }], idempotency_key: clientId }
  const beginChat = async (handle: string): Promise<Sent> => {
    const { json } = await callProvider(post(api, '/chats', { from: api.fromPhone, to: [handle], message }, signal))
    return sentAs(textAt(json, 'chat.message.id'))
  }
  if (isHandle(to.to)) return beginChat(to.to)
  const reply = post(api, `/chats/${pathSegment(to.to)}/messages`, { message }, signal)
  const { status, json } = await callProvider({ ...reply, accept: [404] })
  if (status !== 404) return sentAs(textAt(json, 'message.id'))
  const handle = to.more?.handle
  const isGone = [CHAT_NOT_FOUND, undefined].some((code) => code === valueAt(json, 'error.code'))
  if (handle !== undefined && isGone) return beginChat(handle)
  throw new AppError('invalid_request', `textrelay answered 404: ${explain(json) ?? 'the chat is not known'}`)
}

const post = (api: Api, path: string, body: object, signal: AbortSignal): ProviderCall => ({
  fetch: api.fetch,
  provider: 'textrelay',
  url: `${withoutTrailing(api.url, '/')}${path}`,
  method: 'POST',
  headers: { authorization: `Bearer ${api.token.reveal().trim()}` },
  body,
  signal,
  explain,
})

function sentAs(id: string): Sent {
  if (id === '') throw new AppError('upstream', 'textrelay took the message but gave no id for it')
  return { id }
}

/** One segment of a path, whatever an unsigned request named as its chat. */
function pathSegment(chat: string): string {
  if (/^\.+$/.test(chat)) throw new AppError('invalid_request', 'That is no id of a chat')
  return encodeURIComponent(chat.toWellFormed())
}

function explain(json: unknown): string | undefined {
  const message = textAt(json, 'error.message')
  const code = valueAt(json, 'error.code')
  return typeof code === 'number' ? `${message} (code ${code})` : message || undefined
}
