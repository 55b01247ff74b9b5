/** Binds an acceptance to the exact content that a person was shown. */
import { AppError, printableLine } from '@sluice/sdk'

const WHOLE_SHA256 = /^[0-9a-f]{64}$/

export interface ShownHash {
  /** The hash that the person gives, of the content that was shown. */
  readonly given: string
  /** The SHA-256 of the present content, in hex. */
  readonly present: string
  /** Names the content in errors, such as a folder. */
  readonly name: string
  /** How to see the present content, such as a command. */
  readonly lookAgain: string
}

/**
 * Throws `invalid_request` unless a whole SHA-256 is given, because the author of two contents can make their first digits equal.
 * Throws `conflict` when the present content has another hash. The error does not contain the present hash: its content is unread.
 */
export function requireShownHash({ given, present, name, lookAgain }: ShownHash): void {
  if (!WHOLE_SHA256.test(given))
    throw new AppError(
      'invalid_request',
      `'${printableLine(given.slice(0, 80))}' is not a whole SHA-256 hash of 64 digits. Copy all of the hash that ${lookAgain} shows`,
    )
  if (given !== present)
    throw new AppError('conflict', `The content of ${name} is not the one that was shown with this hash. Read it again with ${lookAgain}`)
}
