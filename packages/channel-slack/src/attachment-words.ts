/**
 * Reads the words of a message's attachments: the words of programs next to the text or in its place, and the parts of the
 * forwarded message. Source: https://docs.slack.dev/legacy/legacy-messaging/legacy-secondary-message-attachments
 */
import { list, type Members, members, text } from '@sluice/kit/foreign-json'
import { blocksText } from './blocks-text.ts'

const NESTED_MAX = 20

/** Returns the words in Slack's markup, one line for each part; `fallback` only without other parts. */
export function attachmentWords(attachment: Members): string {
  const { pretext, title, text: said, fields, blocks, message_blocks, attachments, fallback } = attachment
  const rows = list(fields).map((field) => joined([text(members(field).title), text(members(field).value)], ': '))
  const nested = list(attachments)
    .slice(0, NESTED_MAX)
    .map((each) =>
      joined([text(members(each).pretext), text(members(each).title), text(members(each).text) || text(members(each).fallback)]),
    )
  const body = text(said) || blocksText(blocks) || blocksText(blocksOfMessage(message_blocks))
  return joined([text(pretext), text(title), body, ...rows, ...nested]) || text(fallback)
}

/** Slack wraps the blocks of a message that is passed on into an object for that message. */
const blocksOfMessage = (blocks: unknown): readonly unknown[] =>
  list(blocks).flatMap((each) => {
    const { message } = members(each)
    return message === undefined ? [each] : list(members(message).blocks)
  })

const joined = (parts: readonly string[], separator = '\n'): string => parts.filter((part) => part.trim() !== '').join(separator)
