/** What people write in the play of rooms. */
import { markIn } from '../../marks.ts'
import type { RoomPlace } from './places.ts'

/**
 * `do`: to the bot. `hear`: not to the bot. `remark`: not to the bot, where the agent reads it at once. `slow`: to the bot, and its person may
 * stop its turn. `direct`: in the direct chat of the limited person. `stop`: the command.
 */
export type RoomWordKind = 'do' | 'hear' | 'remark' | 'slow' | 'direct' | 'stop'

export interface RoomWord {
  readonly kind: RoomWordKind
  /** Commands have none in their text. */
  readonly mark: string
  readonly room: RoomPlace
  readonly person: string
  /** The id of the message in the inbox. */
  readonly id: string
}

/** Returns the mark of the message that a reply answers; an empty text for any other text. */
export const replyMark = (text: string | null): string => (text?.startsWith('to ') ? (markIn(text) ?? '') : '')
