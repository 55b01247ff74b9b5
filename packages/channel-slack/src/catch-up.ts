/** What was written while no connection was there: read from the conversations and threads we have heard from, and handed over. */

import { list, type Members, members, text, textAt } from '@sluice/kit/foreign-json'
import { AppError, type Deliver, type Host } from '@sluice/sdk'
import type { Cursor, Cursors, Place } from './cursors.ts'
import { parseMessage, type Reader } from './parse-message.ts'
import type { SlackApi } from './slack-api.ts'
import { isTimestamp, later, timestampAt } from './timestamp.ts'

export interface CatchUp {
  readonly host: Pick<Host, 'clock' | 'log'>
  readonly api: SlackApi
  readonly cursors: Cursors
  readonly reader: Reader
  readonly deliver: Deliver
}

interface Range {
  readonly after: string
  readonly until?: string
  readonly limit: number
  readonly pagesMax: number
}

/** Older messages are nobody's question any more. */
const STALE_MS = 3_600_000
const PAGE = 100
const PAGES_MAX = 20
const ANSWER_BYTES_MAX = 32 * 1024 * 1024
const ASKED_MAX = 5
const WAIT_SECS_MAX = 120

/** Rejects if something could not be read or kept: what was handed over comes again next time, which does no harm. */
export async function catchUp(work: CatchUp, signal: AbortSignal): Promise<void> {
  const { host, cursors } = work
  const staleTo = timestampAt(host.clock.nowMs() - STALE_MS)
  const known = cursors.list()
  const skipped: string[] = []
  for (const cursor of known) {
    if (signal.aborted) return
    try {
      if (cursor.upTo < staleTo && (await hasMessages(work, cursor, staleTo, signal))) skipped.push(cursor.channel)
      await handOver(work, cursor, later(cursor.upTo, staleTo), signal)
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'invalid_request') throw error
      host.log.warn('a conversation can no longer be read and is forgotten', { ...placeOf(cursor), error })
      cursors.drop(cursor)
    }
  }
  if (skipped.length > 0) {
    host.log.warn('messages written while there was no connection are more than an hour old and skipped', {
      channels: [...new Set(skipped)],
    })
  }
}

/** With the answers in threads that were opened since. */
async function handOver(work: CatchUp, place: Place, after: string, signal: AbortSignal): Promise<void> {
  const messages = await read(work, place, { after, limit: PAGE, pagesMax: PAGES_MAX }, signal)
  const known = new Set(work.cursors.list().map(({ channel, thread }) => `${channel}/${thread}`))
  for (const message of messages) {
    const ts = text(message.ts)
    const inbound = parseMessage({ ...message, type: 'message', channel: place.channel }, work.reader)
    if (inbound) await work.deliver(inbound)
    work.cursors.move(placeOf(place), ts)
    const isOpened = place.thread === undefined && text(message.latest_reply) > after && !known.has(`${place.channel}/${ts}`)
    if (isOpened) await handOver(work, { channel: place.channel, thread: ts }, after, signal)
  }
}

const placeOf = ({ channel, thread }: Place): Place => ({ channel, ...(thread !== undefined && { thread }) })

const hasMessages = async (work: CatchUp, cursor: Cursor, until: string, signal: AbortSignal): Promise<boolean> =>
  (await read(work, cursor, { after: cursor.upTo, until, limit: 2, pagesMax: 1 }, signal)).length > 0

/** Oldest first. */
async function read(work: CatchUp, { channel, thread }: Place, range: Range, signal: AbortSignal): Promise<readonly Members[]> {
  const { after, until, limit, pagesMax } = range
  const method = thread === undefined ? 'conversations.history' : 'conversations.replies'
  const found: Members[] = []
  let cursor = ''
  for (let page = 0; page < pagesMax; page++) {
    const args = { channel, ts: thread, oldest: after, latest: until, limit, cursor: cursor || undefined }
    const answer = await patiently(work, signal, () => work.api.call(method, args, { signal, answerBytesMax: ANSWER_BYTES_MAX }))
    const messages = list(answer.messages).map(members)
    // Every page of a thread begins with its first message, which is one of the conversation.
    found.push(...messages.filter(({ ts }) => isTimestamp(text(ts)) && text(ts) > after && ts !== thread))
    cursor = textAt(answer, 'response_metadata.next_cursor')
    if (cursor === '') break
  }
  if (cursor !== '' && pagesMax === PAGES_MAX) work.host.log.warn('more was written than is read again: the rest is left out', { channel })
  return found.toSorted((a, b) => (text(a.ts) < text(b.ts) ? -1 : 1))
}

/** Reading is limited more than anything else: what was read so far would be asked for again in vain. */
async function patiently<Result>({ host }: CatchUp, signal: AbortSignal, ask: () => Promise<Result>): Promise<Result> {
  for (let asked = 1; ; asked++) {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'rate_limited' || asked === ASKED_MAX) throw error
      await host.clock.sleep(Math.min(error.retryAfterSecs ?? 30, WAIT_SECS_MAX) * 1000, signal)
    }
  }
}
