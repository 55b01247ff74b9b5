/** Sends and edits messages. */
import { createHash } from 'node:crypto'
import { pathSegment } from '@sluice/kit'
import { text } from '@sluice/kit/foreign-json'
import { type Address, AppError, type Outbound, type Sent } from '@sluice/sdk'
import type { Call, WorkchatApi } from './api.ts'
import { cardOf, type Payload, textOf } from './card.ts'
import { uploadFiles } from './media.ts'
import { isBadCard, isGone } from './refusal.ts'
import { CredentialsError } from './token.ts'

/** The longest `uuid`, by which the platform recognises a repeated message for an hour. */
const UUID_CHARS_MAX = 50

/** See `Channel.send`. Each file is a message of its own, after the text. */
export async function sendMessage(api: WorkchatApi, to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> {
  try {
    return await sendParts(api, to, message, signal)
  } catch (error) {
    // Nothing was sent, and the operator can correct the credentials.
    throw error instanceof CredentialsError ? new AppError('unavailable', error.message) : error
  }
}

async function sendParts(api: WorkchatApi, to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> {
  const { attachments = [], buttons = [] } = message
  const route = routeOf(to)
  const files = await uploadFiles(api, attachments, signal)
  const hasText = message.text !== '' || buttons.length > 0 || files.length === 0
  const sent = hasText ? await sendText(api, to, route, message, signal) : undefined
  let first = sent
  for (const [index, file] of files.entries()) {
    try {
      const next = await deliver(api, to, route, file, uuidOf(message.clientId, index + 1), signal)
      first ??= next
    } catch (error) {
      if (!first) throw error
      throw new AppError('upstream', 'A part of the message was sent to workchat, but one of its files was not', { cause: error })
    }
  }
  if (!first) throw new AppError('invalid_request', 'The message is empty')
  return first
}

/** See `Channel.update`. */
export async function updateMessage(api: WorkchatApi, to: Address, sent: Sent, message: Outbound, signal: AbortSignal): Promise<void> {
  const path = `/im/v1/messages/${pathSegment(sent.id)}` as const
  const card = cardOf(message, to.thread)
  if (!card) throw new AppError('invalid_request', 'workchat accepts no edit of this length')
  await api.call({ method: 'PATCH', path, body: { content: card.content }, signal })
}

/** Sends a card, or the plain text if the platform cannot make a card of it. A refused card was not sent. */
async function sendText(api: WorkchatApi, to: Address, route: Route, message: Outbound, signal: AbortSignal): Promise<Sent> {
  const uuid = uuidOf(message.clientId, 0)
  const card = cardOf(message, to.thread)
  if (!card) return deliver(api, to, route, textOf(message), uuid, signal)
  try {
    return await deliver(api, to, route, card, uuid, signal)
  } catch (error) {
    if (!isBadCard(error) || message.text === '') throw error
    return deliver(api, to, route, textOf(message), uuid, signal)
  }
}

type Route = Pick<Call, 'path' | 'query'> & { readonly more: Readonly<Record<string, unknown>> }

/** A message to a thread answers its first message. */
function routeOf({ to, thread, replyTo = thread }: Address): Route {
  if (replyTo === undefined) return { path: '/im/v1/messages', query: { receive_id_type: 'chat_id' }, more: { receive_id: to } }
  return { path: `/im/v1/messages/${pathSegment(replyTo)}/reply`, more: { reply_in_thread: thread !== undefined } }
}

/** A message that was recalled cannot be answered: the answer then goes to the beginning of its thread, or to the conversation. */
async function deliver(
  api: WorkchatApi,
  to: Address,
  { more, ...route }: Route,
  payload: Payload,
  uuid: string,
  signal: AbortSignal,
): Promise<Sent> {
  try {
    const { message_id: id } = await api.callSurely({ method: 'POST', ...route, body: { ...more, ...payload, uuid }, signal })
    if (text(id) === '') throw new AppError('upstream', 'workchat accepted the message but did not return its id')
    return { id: text(id) }
  } catch (error) {
    const { thread, replyTo = thread } = to
    if (replyTo === undefined || !isGone(error)) throw error
    const rest = { to: to.to, ...(thread !== undefined && thread !== replyTo && { thread }) }
    return deliver(api, rest, routeOf(rest), payload, uuid, signal)
  }
}

/** Returns the same text for each attempt to send one part of a message. */
export function uuidOf(clientId: string, part: number): string {
  const uuid = part === 0 ? clientId : `${clientId}.${part}`
  return uuid.length <= UUID_CHARS_MAX ? uuid : createHash('sha256').update(uuid).digest('base64url')
}
