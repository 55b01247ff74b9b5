/** Reads the words that programs add to the text of a post: https://developers.mattermost.com/integrate/reference/message-attachments/ */
import { list, type Members, members, text } from '@sluice/kit/foreign-json'

const ATTACHMENTS_MAX = 20

/** Returns the text of a post with the words of its attachments, one line for each part. */
export function wordsOfPost({ message, props }: Members): string {
  const attachments = list(members(props).attachments).slice(0, ATTACHMENTS_MAX)
  return joined([text(message), ...attachments.map((attachment) => attachmentWords(members(attachment)))])
}

/** `fallback` is for programs that cannot show the others. */
function attachmentWords({ pretext, author_name, title, title_link, text: said, fields, footer, fallback }: Members): string {
  const rows = list(fields).map((field) => joined([wordOf(members(field).title), wordOf(members(field).value)], ': '))
  return joined([text(pretext), text(author_name), text(title), text(title_link), text(said), ...rows, text(footer)]) || text(fallback)
}

/** A value may be a number. */
const wordOf = (value: unknown): string => (typeof value === 'number' ? String(value) : text(value))

const joined = (parts: readonly string[], separator = '\n'): string => parts.filter((part) => part.trim() !== '').join(separator)
