/** Writes and delivers messages of chosen senders. */
import type { KindName, Message } from '../history.ts'
import type { Kind } from '../kind.ts'
import { markOf } from '../marks.ts'
import { post } from '../request.ts'
import type { Stage } from '../stage.ts'

/** A kind whose messages arrive as requests. */
export type PostedKind = Kind & Required<Pick<Kind, 'request'>>

export function kindOf({ kinds }: Stage['world'], name: KindName): PostedKind {
  const found = kinds.find((kind): kind is PostedKind => kind.name === name && kind.request !== undefined)
  if (!found) throw new Error(`The world has no kind "${name}" whose messages arrive as requests.`)
  return found
}

export function writeMessage({ recorder }: Stage['world'], kind: Kind, sender: string): Message {
  const message = kind.write({ mark: markOf(recorder.nextNumber()), sender, parts: 1, usesTool: false })
  recorder.add(message)
  return message
}

/** Delivers one message of each sender in one request, and records it as posted and, with status 200, as acknowledged. */
export async function deliverMessages(
  { world, signal }: Stage,
  url: string,
  kind: PostedKind,
  senders: readonly string[],
): Promise<Message[]> {
  const messages = senders.map((sender) => writeMessage(world, kind, sender))
  const marks = messages.map(({ mark }) => mark)
  world.recorder.see({ type: 'posted', marks })
  if ((await post(url, kind.request(messages), signal)).status === 200) world.recorder.see({ type: 'acked', marks })
  return messages
}
