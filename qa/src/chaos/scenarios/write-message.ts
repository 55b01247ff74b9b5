/** Writes and delivers messages of chosen senders. */
import type { KindName, Message } from '../history.ts'
import type { Kind } from '../kind.ts'
import { markOf } from '../marks.ts'
import { post } from '../request.ts'
import type { Stage } from '../stage.ts'

export function kindOf({ kinds }: Stage['world'], name: KindName): Kind {
  const found = kinds.find((kind) => kind.name === name)
  if (!found) throw new Error(`The world has no kind "${name}".`)
  return found
}

export function writeMessage({ recorder }: Stage['world'], kind: Kind, sender: string): Message {
  const message = kind.write({ mark: markOf(recorder.nextNumber()), sender, parts: 1, usesTool: false })
  recorder.add(message)
  return message
}

/** Delivers one message of each sender in one request, and records it as posted and, with status 200, as acknowledged. */
export async function deliverMessages({ world, signal }: Stage, url: string, kind: Kind, senders: readonly string[]): Promise<Message[]> {
  const messages = senders.map((sender) => writeMessage(world, kind, sender))
  const marks = messages.map(({ mark }) => mark)
  world.recorder.see({ type: 'posted', marks })
  if ((await post(url, kind.request(messages), signal)).status === 200) world.recorder.see({ type: 'acked', marks })
  return messages
}
