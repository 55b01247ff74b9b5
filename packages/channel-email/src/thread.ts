/** Keeps the mails of a conversation together: the name of a thread is derived from its first mail, and carried in our message ids. */
import { messageIds } from '@sluice/mail-common'
import { sha256Hex } from '@sluice/sdk'

const THREAD = /^[\da-f]{16}$/
const OWN_ID = /^<[\da-f]{32}\.([\da-f]{16})@/

/**
 * Returns the name of the thread of a mail. Some programs name only the mail that they answer, and not the beginning of the thread;
 * if that is one of ours, its id says which thread it is in.
 */
export function threadOf({ messageId, inReplyTo, references }: { messageId: string; inReplyTo: string; references: string }): string {
  const named = [...messageIds(references), ...messageIds(inReplyTo)]
  const own = named.map((id) => OWN_ID.exec(id)?.[1]).find((thread) => thread !== undefined)
  return own ?? sha256Hex(named[0] ?? messageId).slice(0, 16)
}

/** Returns the id of a mail that we send. It is the same for every attempt. */
export function ownMessageId(clientId: string, thread: string | undefined, address: string): string {
  const domain = /@([\w.-]+)$/.exec(address)?.[1] ?? 'sluice.invalid'
  const inThread = thread !== undefined && THREAD.test(thread) ? `.${thread}` : ''
  return `<${sha256Hex(clientId).slice(0, 32)}${inThread}@${domain}>`
}
