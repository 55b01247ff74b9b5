/** Recognises mails of programs, lists and mail systems by their headers. An agent that answered them could start a loop. */

/** Returns the values of all headers with a name in lower case, topmost first. */
export type Headers = (name: string) => readonly string[]

/** Headers of programs that reply automatically, such as absence notes. */
const AUTO_REPLY_HEADERS = ['x-autoreply', 'x-autorespond']

/** Returns why a mail must not be answered, as a clause for the log; undefined for a mail of a person. */
export function automaticBecause(headers: Headers): string | undefined {
  const [autoSubmitted = 'no'] = headers('auto-submitted')
  const [precedence = ''] = headers('precedence')
  if (!/^no\b/i.test(autoSubmitted)) return 'a program sent it (Auto-Submitted)'
  if (suppressesReplies(headers('x-auto-response-suppress'))) return 'its sender wants no automatic reply (X-Auto-Response-Suppress)'
  const autoReply = AUTO_REPLY_HEADERS.find((name) => headers(name).some((value) => !/^no$/i.test(value)))
  if (autoReply) return `a program sent it (${autoReply})`
  if (headers('list-id').length > 0) return 'it came through a mailing list (List-Id)'
  if (/^(?:bulk|list|junk|auto_reply)$/i.test(precedence)) return 'it is a bulk mail (Precedence)'
  if (headers('return-path').includes('<>')) return 'it is a report of the mail system (Return-Path)'
  return undefined
}

/** Exchange forbids automatic replies with `All`, or with a list that contains `OOF` or `AutoReply`. Other values allow a reply. */
const suppressesReplies = (values: readonly string[]): boolean =>
  values.some((value) => value.split(/[,;]/).some((word) => /^(?:all|oof|autoreply)$/i.test(word.trim())))
