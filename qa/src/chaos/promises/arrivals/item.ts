/** What a person sends in the play of arrivals. */
import type { Delivered } from './platform.ts'

export type ItemKind = 'text' | 'album' | 'quote' | 'forward'

/** One message of a person, or all messages of an album. */
export interface Item {
  readonly mark: string
  readonly channel: string
  readonly person: string
  readonly kind: ItemKind
  readonly delivered: readonly Delivered[]
  readonly pictures: readonly Uint8Array[]
  /** The mark of the message that it quotes. */
  readonly quotes?: string
  /** The mark of its new words. */
  edit?: string
  /** Whether a kill came between the deliveries of its messages, so that the platform delivered the rest much later. */
  isTornApart?: boolean
  /** The longest measured time between two of its messages. On a busy machine, pauses end late. */
  gapMs?: number
}
