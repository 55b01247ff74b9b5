/** Sends replies into the chat of the message, or into a new chat when the platform no longer has the old one. Shows typing. */
import { callProvider, pathSegment } from '@sluice/kit'
import { textAt, valueAt } from '@sluice/kit/foreign-json'
import { type Address, AppError, type Outbound, type Sent } from '@sluice/sdk'
import { type Api, explain, post } from './api.ts'
import { isHandle } from './handle.ts'
import { uploadFile } from './upload.ts'

/** The platform's error code for an unknown chat. Other unknown objects are 404 as well, with another code. */
const CHAT_NOT_FOUND = 2001

/** Implements `Channel.send`. The platform drops a message whose `idempotency_key` it has seen before. */
export async function sendMessage(
  api: Api,
  to: Address,
  { text, attachments = [], clientId }: Outbound,
  signal: AbortSignal,
): Promise<Sent> {
  // Files are uploaded before anything is sent, so that a failed upload can be tried again.
  const files = await Promise.all(attachments.map((file) => uploadFile(api, file, signal)))
  const parts = [
    ...(text === '' ? [] : [{ type: 'text', value: text }]),
    ...files.map((attachment_id) => ({ type: 'media', attachment_id })),
  ]
  const message = { parts, idempotency_key: clientId }
  const startChat = async (handle: string): Promise<Sent> => {
    const { json } = await callProvider(post(api, '/chats', { from: api.fromPhone, to: [handle], message }, signal))
    return sentAs(textAt(json, 'chat.message.id'))
  }
  if (isHandle(to.to)) return startChat(to.to)
  const reply = post(api, `/chats/${pathSegment(to.to)}/messages`, { message }, signal)
  const { status, json } = await callProvider({ ...reply, accept: [404] })
  if (status !== 404) return sentAs(textAt(json, 'message.id'))
  const handle = to.more?.handle
  const isGone = [CHAT_NOT_FOUND, undefined].some((code) => code === valueAt(json, 'error.code'))
  if (handle !== undefined && isGone) return startChat(handle)
  throw new AppError('invalid_request', `textrelay answered 404: ${explain(json) ?? 'unknown chat'}`)
}

/** Implements `Channel.typing`. Groups have no indicator, and only chats of two have a handle. Source: `chats.typing` of `@linqapp/sdk`. */
export async function showTyping(api: Api, { to, more }: Address, signal: AbortSignal): Promise<void> {
  if (more?.handle !== undefined && !isHandle(to)) await callProvider(post(api, `/chats/${pathSegment(to)}/typing`, {}, signal))
}

function sentAs(id: string): Sent {
  if (id === '') throw new AppError('upstream', 'textrelay accepted the message but returned no id for it')
  return { id }
}
