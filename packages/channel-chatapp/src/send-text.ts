/** One text to a person or a group. The provider takes no id of ours, so what is sent twice arrives twice. */

import { list, members, text as textOf } from '@sluice/kit/foreign-json'
import { type Address, AppError, type Sent } from '@sluice/sdk'
import type { Graph } from './graph.ts'
import { recipientOf } from './sender.ts'

export async function sendText(
  graph: Graph,
  account: string,
  { to, text, signal }: { readonly to: Address; readonly text: string; readonly signal: AbortSignal },
): Promise<Sent> {
  const body = {
    messaging_product: 'whatsapp',
    ...recipientOf(to.to),
    type: 'text',
    text: { preview_url: false, body: text },
    ...(to.replyTo && { context: { message_id: to.replyTo } }),
  }
  const answer = await graph.call({ method: 'POST', path: `${encodeURIComponent(account)}/messages`, body, signal })
  const id = textOf(members(list(members(answer).messages)[0]).id)
  if (id.trim() === '') throw new AppError('upstream', 'chatapp answered without the id of the message')
  return { id }
}
