/** Decides which mails the agent must not answer: our own, automatic and bulk mails, and mails whose sender may be forged. */
import { automaticBecause } from '@sluice/mail-common/reading'
import { headersOf, type Mail } from './mail.ts'

export interface MailPolicy {
  /** The address of the mailbox, in lower case. */
  readonly ownAddress: string
  /** Whether mails that fail DMARC are ignored. True when the allowlist names senders, which a forged mail must not impersonate. */
  readonly requiresDmarc: boolean
  /** Returns whether the allowlist covers an address in lower case. */
  isAllowed(address: string): boolean
}

/** Returns the reason to ignore a mail, as a clause for the log; undefined for a mail to read. `sender` is its only `From` address. */
export function whyIgnored({ labelIds, payload }: Mail, sender: string | undefined, policy: MailPolicy): string | undefined {
  if (labelIds.includes('SENT') || labelIds.includes('DRAFT')) return 'it is our own'
  if (sender === undefined) return 'its From is not one plain address'
  if (sender === policy.ownAddress) return 'it is our own'
  const automatic = automaticBecause((name) => headersOf(payload, name))
  if (automatic !== undefined) return automatic
  if (policy.requiresDmarc && dmarcOf(headersOf(payload, 'authentication-results')) === 'fail')
    return 'its sender may be forged (DMARC failed)'
  return undefined
}

/** Tells whether the receiving host has verified the domain of the sender. */
export const passesDmarc = (payload: Mail['payload']): boolean => dmarcOf(headersOf(payload, 'authentication-results')) === 'pass'

/** The topmost result is the one of the receiving host. A sender can forge the others. */
const dmarcOf = ([ownResult = '']: readonly string[]): string | undefined =>
  /(?:^|[;\s])dmarc\s*=\s*(\w+)/i.exec(ownResult)?.[1]?.toLowerCase()
