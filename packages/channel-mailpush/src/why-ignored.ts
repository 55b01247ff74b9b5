/** Which mails are nobody's words to us: our own, those of machines, those sent to many, those whose sender is not proved. */
import { headersOf, type Mail } from './mail.ts'

/** Set by programs that answer mails by themselves, such as absence notes. */
const AUTO_REPLY_HEADERS = ['x-autoreply', 'x-autorespond']

export interface Circumstances {
  /** The one address in From, if there is exactly one. */
  readonly sender: string | undefined
  /** Our own. */
  readonly mailbox: string
  /** True: names on the allowlist count, so a forged sender must not pass for one of them. */
  readonly mustBeProved: boolean
}

/** Undefined for a mail that is to be read. */
export function whyIgnored({ labelIds, payload }: Mail, { sender, mailbox, mustBeProved }: Circumstances): string | undefined {
  const [autoSubmitted = 'no'] = headersOf(payload, 'auto-submitted')
  const [precedence = ''] = headersOf(payload, 'precedence')
  if (labelIds.includes('SENT') || labelIds.includes('DRAFT')) return 'it is our own'
  if (sender === undefined) return 'its From is not one plain address'
  if (sender === mailbox) return 'it is our own'
  if (!/^no\b/i.test(autoSubmitted)) return 'a machine sent it (Auto-Submitted)'
  if (suppresses(headersOf(payload, 'x-auto-response-suppress'))) return 'its sender wants no automatic answer (X-Auto-Response-Suppress)'
  const replier = AUTO_REPLY_HEADERS.find((name) => headersOf(payload, name).some((value) => !/^no$/i.test(value)))
  if (replier) return `a machine sent it (${replier})`
  if (headersOf(payload, 'list-id').length > 0) return 'it came over a mailing list (List-Id)'
  if (/^(?:bulk|list|junk|auto_reply)$/i.test(precedence)) return 'it was sent to many (Precedence)'
  if (headersOf(payload, 'return-path').includes('<>')) return 'it is a report of the mail system (Return-Path)'
  if (mustBeProved && failsDmarc(headersOf(payload, 'authentication-results'))) return 'its sender may be forged (DMARC failed)'
  return undefined
}

/** Exchange asks with it not to be answered: `All`, or a list with `OOF` or `AutoReply` in it. `None` and the rest allow an answer. */
const suppresses = (values: readonly string[]): boolean =>
  values.some((value) => value.split(/[,;]/).some((word) => /^(?:all|oof|autoreply)$/i.test(word.trim())))

/** The topmost result is the receiving host's own; those below it may be anybody's. */
const failsDmarc = ([ours = '']: readonly string[]): boolean => /(?:^|[;\s])dmarc\s*=\s*fail\b/i.test(ours)
