/** Reads the events between two syncs that did not fit into the second one (client-server API, `GET /rooms/{roomId}/messages`). */
import { list, type Members, members, text } from '@sluice/kit/foreign-json'
import type { ListenContext } from '@sluice/sdk'
import type { Session } from './session.ts'

const PAGE = 100
const PAGES_MAX = 50
const PAGE_BYTES_MAX = 16 * 1_048_576

export interface MissedOptions {
  readonly session: Session
  readonly room: string
  /** The position before the first event of the sync. */
  readonly from: string
  /** The position of the sync before. */
  readonly to: string
  readonly sinceMs: number
  readonly context: Pick<ListenContext, 'signal' | 'report'>
}

/** Returns the events, oldest first, and reports a gap for the ones beyond the limit. */
export async function readMissed({ session, room, from, to, sinceMs, context }: MissedOptions): Promise<readonly Members[]> {
  const pages: (readonly Members[])[] = []
  let at = from
  for (let page = 0; at !== '' && at !== to; page++) {
    if (page === PAGES_MAX) {
      context.report.gap({ sinceMs, why: `more than ${PAGES_MAX * PAGE} events were missed in ${room}` })
      break
    }
    const answer = await session.api.client('GET', ['rooms', room, 'messages'], {
      query: { dir: 'b', from: at, to, limit: String(PAGE), filter: JSON.stringify({ lazy_load_members: true }) },
      signal: context.signal,
      answerBytesMax: PAGE_BYTES_MAX,
    })
    for (const event of list(answer.state)) session.rooms.learnName(room, members(event))
    pages.unshift(list(answer.chunk).map(members).toReversed())
    at = text(answer.end)
  }
  return pages.flat()
}
