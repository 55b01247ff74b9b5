/** How far the channel has stored each conversation, and each thread in which it has seen messages. */
import { Cursors, type Position } from '@sluice/kit'
import { members, text } from '@sluice/kit/foreign-json'
import type { KeyValue } from '@sluice/sdk'

/** Times in milliseconds, as text. */
export interface Kept extends Position {
  /** The type of the conversation, which its history does not tell: `p2p`, `group` or `topic_group`. */
  readonly type: string
}

export type WorkchatCursors = Cursors<Kept>

/** A conversation, or a thread in it with the id that the platform gave it. */
export interface Place {
  readonly chat: string
  readonly thread?: string
}

const THREADS = { max: 100, has: (scope: string) => scope.includes('/') }
const CHATS = { max: 400, has: () => true }

/** The name keeps the positions of the two channels apart. */
export const createCursors = (keyValue: KeyValue, name: string): WorkchatCursors =>
  new Cursors<Kept>({
    keyValue,
    key: `cursors:${name}`,
    groups: [THREADS, CHATS],
    read(_scope, stored) {
      const { after, type } = members(stored)
      return /^\d{10,15}$/.test(text(after)) ? { after: text(after), type: text(type) } : undefined
    },
  })

export const scopeOf = ({ chat, thread }: Place): string => (thread === undefined ? chat : `${chat}/${thread}`)

export function placeOf(scope: string): Place {
  const [chat = '', thread] = scope.split('/')
  return { chat, ...(thread !== undefined && { thread }) }
}
