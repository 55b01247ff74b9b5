/** Decides which mails the agent must not answer: our own, automatic and bulk mails, and mails whose sender may be forged. */
import { headersOf, type Mail } from './mail.ts'

export interface MailPolicy {
  /** The address of the mailbox, in lower case. */
  readonly ownAddress: string
  /** Whether mails that fail DMARC are ignored. True when the allowlist names senders, which a forged mail must not impersonate. */
  readonly requiresDmarc: boolean
  /** Returns whether the allowlist covers an address in lower case. */
  isAllowed(address: string): boolean
}

/** Headers of programs that reply automatically, such as absence notes. */
const AUTO_REPLY_HEADERS = ['x-autoreply', 'x-autorespond']

/** Returns the reason to ignore a mail, as a clause for the log; undefined for a mail to read. `sender` is its only `From` address. */
export function whyIgnored({ labelIds, payload }: Mail, sender: string | undefined, policy: MailPolicy): string | undefined {
  const [autoSubmitted = 'no'] = headersOf(payload, 'auto-submitted')
  const [precedence = ''] = headersOf(payload, 'precedence')
  if (labelIds.includes('SENT') || labelIds.includes('DRAFT')) return 'it is our own'
  if (sender === undefined) return 'its From is not one plain address'
  if (sender === policy.ownAddress) return 'it is our own'
  if (!/^no\b/i.test(autoSubmitted)) return 'a program sent it (Auto-Submitted)'
  if (suppressesReplies(headersOf(payload, 'x-auto-response-suppress'))) {
    return 'its sender wants no automatic reply (X-Auto-Response-Suppress)'
  }
  const autoReply = AUTO_REPLY_HEADERS.find((name) => headersOf(payload, name).some((value) => !/^no$/i.test(value)))
  if (autoReply) return `a program sent it (${autoReply})`
  if (headersOf(payload, 'list-id').length > 0) return 'it came through a mailing list (List-Id)'
  if (/^(?:bulk|list|junk|auto_reply)$/i.test(precedence)) return 'it is a bulk mail (Precedence)'
  if (headersOf(payload, 'return-path').includes('<>')) return 'it is a report of the mail system (Return-Path)'
  if (policy.requiresDmarc && dmarcOf(headersOf(payload, 'authentication-results')) === 'fail')
    return 'its sender may be forged (DMARC failed)'
  return undefined
}

/** Exchange forbids automatic replies with `All`, or with a list that contains `OOF` or `AutoReply`. Other values allow a reply. */
const suppressesReplies = (values: readonly string[]): boolean =>
  values.some((value) => value.split(/[,;]/).some((word) => /^(?:all|oof|autoreply)$/i.test(word.trim())))

/** Tells whether the receiving host has verified the domain of the sender. */
export const passesDmarc = (payload: Mail['payload']): boolean => dmarcOf(headersOf(payload, 'authentication-results')) === 'pass'

/** The topmost result is the one of the receiving host. A sender can forge the others. */
const dmarcOf = ([ownResult = '']: readonly string[]): string | undefined =>
  /(?:^|[;\s])dmarc\s*=\s*(\w+)/i.exec(ownResult)?.[1]?.toLowerCase()
