/** The identities of senders, which the allowlist is matched against: only a verified one can equal an entry. */
import { coversAddress } from '@sluice/mail-common'

/** No mail address begins like this. */
const UNVERIFIED = 'unverified:'

/** The sender of a mail from `address`. Nothing shows who wrote an unverified one, so it is another sender than the verified address. */
export const senderOf = (address: string, isVerified: boolean): string => (isVerified ? address : `${UNVERIFIED}${address}`)

/** Whether an entry that is a domain covers a sender. */
export const coversSender = (entry: string, sender: string): boolean => !sender.startsWith(UNVERIFIED) && coversAddress(entry, sender)
