/**
 * Reads the messages that a person passes on together, of which an event has only a placeholder. Sources: "Merge and forward messages" and
 * "Get the content of a specified message" of the platform's API, which returns them behind the message itself.
 */
import { list, type Members, members, text } from '@sluice/kit/foreign-json'
import { wordsOf } from '@sluice/sdk'
import { MERGED_TYPE } from './content.ts'
import { type Bot, readMessage } from './parse.ts'

const DEPTH_MAX = 10
const LINES_MAX = 1000

/** Returns one line for each message that was passed on in the message with this id, with its writer; empty without any. */
export function passedOnWords(items: unknown, id: string, bot: Bot): string {
  const all = list(items).map(members)
  const lines: string[] = []
  const visit = (upper: string, depth: number): void => {
    for (const item of all.filter(({ upper_message_id }) => upper_message_id === upper)) {
      if (lines.length >= LINES_MAX || depth > DEPTH_MAX) return
      if (item.msg_type === MERGED_TYPE) visit(text(item.message_id), depth + 1)
      else lines.push(...lineOf(item, bot))
    }
  }
  visit(id, 0)
  return lines.join('\n')
}

/** The platform does not give out the files of such messages, so that their names stand for them. */
function lineOf(item: Members, bot: Bot): readonly string[] {
  const message = readMessage(item, bot)
  if (!message) return []
  const files = (message.attachments ?? []).map(({ kind, name }) => `[${kind} ${name}]`)
  const said = [wordsOf(message), ...files].filter((part) => part !== '').join(' ')
  return said === '' ? [] : [`${message.author.id || 'somebody'}: ${said}`]
}
