/** Sends one text to a person or a group. The platform accepts no client message id, so a repeated send arrives twice. */
import { pathSegment } from '@sluice/kit'
import { list, members, text as textOf } from '@sluice/kit/foreign-json'
import { type Address, AppError, type Outbound, type Sent } from '@sluice/sdk'
import { recipientOf } from './address.ts'
import type { Graph } from './api.ts'

/** Implements `Channel.send`. `account` is the platform's id of our number. */
export async function sendMessage(graph: Graph, account: string, to: Address, { text }: Outbound, signal: AbortSignal): Promise<Sent> {
  const body = {
    messaging_product: 'whatsapp',
    ...recipientOf(to.to),
    type: 'text',
    text: { preview_url: false, body: text },
    ...(to.replyTo && { context: { message_id: to.replyTo } }),
  }
  const answer = await graph.call({ method: 'POST', path: `${pathSegment(account)}/messages`, body, signal })
  const id = textOf(members(list(members(answer).messages)[0]).id)
  if (id.trim() === '') throw new AppError('upstream', 'chatapp accepted the message but returned no id for it')
  return { id }
}
