/**
 * Reads the messages that a person passes on together, of which an event has only a placeholder. Sources: "Merge and forward messages" and
 * "Get the content of a specified message" of the platform's API, which returns them behind the message itself.
 */
import { pathSegment } from '@sluice/kit'
import { list, type Members, members, text } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, type Media, wordsOf } from '@sluice/sdk'
import type { WorkchatApi } from './api.ts'
import { MERGED, MERGED_TYPE } from './content.ts'
import { type Bot, readMessage } from './parse.ts'

const DEPTH_MAX = 10
const LINES_MAX = 1000

type Reader = Pick<Bot, 'account' | 'openId'>

/** Resolves to the message with this id and the messages that it passes on. */
export const readItems = async (api: WorkchatApi, id: string, signal: AbortSignal): Promise<unknown> =>
  (await api.call({ method: 'GET', path: `/im/v1/messages/${pathSegment(id)}`, signal })).items

/** The messages that are passed on in the message with this id, as a file that is read when the turn begins. */
export const passedOnFile = (id: string): Attachment => ({
  kind: 'file',
  name: 'forwarded-messages.txt',
  mime: 'text/plain',
  source: { id: `${id}/${MERGED_TYPE}` },
})

/** Reads that file, which is never empty. Throws `too_large` above the limit, and as `WorkchatApi.call` does. */
export async function fetchPassedOn(
  api: WorkchatApi,
  { id, bot, bytesMax, signal }: { readonly id: string; readonly bot: Reader; readonly bytesMax: number; readonly signal: AbortSignal },
): Promise<Media> {
  const bytes = Buffer.from(passedOnWords(await readItems(api, id, signal), id, bot) || MERGED)
  if (bytes.length > bytesMax) throw new AppError('too_large', `The forwarded messages have more than ${bytesMax} bytes`)
  return { bytes, mime: 'text/plain' }
}

/** Returns one line for each message that was passed on in the message with this id, with its writer; empty without any. */
export function passedOnWords(items: unknown, id: string, bot: Reader): string {
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
function lineOf(item: Members, bot: Reader): readonly string[] {
  const message = readMessage(item, bot)
  if (!message) return []
  const files = (message.attachments ?? []).map(({ kind, name }) => `[${kind} ${name}]`)
  const said = [wordsOf(message), ...files].filter((part) => part !== '').join(' ')
  return said === '' ? [] : [`${message.author.id || 'somebody'}: ${said}`]
}
