/** How far the channel has stored each conversation, and each thread that the bot has written in. */
import { Cursors } from '@sluice/kit'
import { members } from '@sluice/kit/foreign-json'
import type { KeyValue } from '@sluice/sdk'
import { isTimestamp } from './timestamp.ts'

/** A conversation, or a thread in it. */
export interface Place {
  readonly channel: string
  readonly thread?: string
}

export type SlackCursors = Cursors

const THREADS = { max: 100, has: (scope: string) => scope.includes('/') }
const CHANNELS = { max: 400, has: () => true }

export const createCursors = (keyValue: KeyValue): SlackCursors =>
  new Cursors({
    keyValue,
    key: 'cursors',
    groups: [THREADS, CHANNELS],
    read(_scope, stored) {
      const { after } = members(stored)
      return typeof after === 'string' && isTimestamp(after) ? { after } : undefined
    },
    entriesOf(stored) {
      const { channels, threads, ...entries } = members(stored)
      // Releases before 0.2 stored the positions of conversations and of threads apart, as plain timestamps.
      const earlier = Object.entries({ ...members(channels), ...members(threads) }).map(([scope, after]) => [scope, { after }] as const)
      return [...earlier, ...Object.entries(entries)]
    },
  })

/** Returns the scope of a place in the cursors. */
export const scopeOf = ({ channel, thread }: Place): string => (thread === undefined ? channel : `${channel}/${thread}`)

export function placeOf(scope: string): Place {
  const [channel = '', thread] = scope.split('/')
  return { channel, ...(thread !== undefined && { thread }) }
}
