/** Conversations for an operator: found by the person, exported, and erased with everything that is kept of them. */

import { personIn, senderOf, sessionsOfSender } from '@sluice/delivery'
import { isoTime } from '@sluice/kit'
import { AppError, type Erased, type SessionRow, type SessionStore, type Store } from '@sluice/sdk'
import { type PlainMessage, plainMessage } from './plain-message.ts'

/** Somebody who writes on a channel, as the channel names them. */
export interface Person {
  readonly channel: string
  readonly sender: string
}

const PAGE = 500

export interface SaidLine extends PlainMessage {
  readonly at: string
}

/** Everything that was said in a session, oldest first. */
export async function* exported(sessions: Pick<SessionStore, 'said'>, id: string): AsyncGenerator<SaidLine> {
  for (let after = 0; ; ) {
    const page = await sessions.said(id, { after, limit: PAGE })
    for (const { atMs, messages } of page) for (const message of messages) yield { at: isoTime(atMs), ...plainMessage(message) }
    const last = page.at(-1)
    if (!last || page.length < PAGE) return
    after = last.upTo
  }
}

/** The sessions of a channel, or of one of its senders, for a list of sessions. */
export function sessionsEnds(channel: string, sender?: string): { readonly prefix: string; readonly suffix?: string } {
  const { prefix, suffix } = sessionsOfSender(channel, sender ?? '')
  return sender === undefined ? { prefix } : { prefix, suffix }
}

/** Where the page after this one begins; null after the last one. */
export const cursorAfter = (page: readonly SessionRow[], limit: number): string | null => {
  const last = page.at(limit - 1)
  return page.length > limit && last ? Buffer.from(JSON.stringify([last.lastActiveAtMs, last.id])).toString('base64url') : null
}

/** Throws `invalid_request` for anything but a cursor. */
export function readCursor(cursor: string): Pick<SessionRow, 'id' | 'lastActiveAtMs'> {
  try {
    const [lastActiveAtMs, id] = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (typeof lastActiveAtMs === 'number' && typeof id === 'string') return { lastActiveAtMs, id }
  } catch {
    // Refused below.
  }
  throw new AppError('invalid_request', 'The cursor is not one that a list of sessions gave.')
}

/** The sessions of a person, and those that only messages without a successful turn name. */
export async function sessionsOf({ sessions, inbox }: Pick<Store, 'sessions' | 'inbox'>, { channel, sender }: Person): Promise<string[]> {
  const found = new Set<string>()
  const ends = sessionsOfSender(channel, sender)
  for (let before: SessionRow | undefined; ; ) {
    const page: SessionRow[] = await sessions.list({ limit: PAGE, ...ends, ...(before && { before }) })
    for (const { id } of page) found.add(id)
    before = page.at(-1)
    if (page.length < PAGE) break
  }
  for (let before = Number.MAX_SAFE_INTEGER; ; ) {
    const page = await inbox.list({ limit: PAGE, before, channel })
    for (const row of page) if (row.sender === sender) found.add(row.session)
    before = page.at(-1)?.number ?? 0
    if (page.length < PAGE) break
  }
  return [...found]
}

/** Erases all conversations of a person with their memories. Undefined if nothing is kept of them. */
export async function erasePerson(
  store: Pick<Store, 'sessions' | 'inbox'>,
  person: Person,
  about: { readonly atMs: number; readonly by: string },
): Promise<Erased | undefined> {
  let total: Erased | undefined
  for (const id of await sessionsOf(store, person)) {
    const { account } = personIn(id) ?? {}
    const owner = account === undefined ? undefined : senderOf(person.channel, { account, sender: person.sender })
    const erased = await store.sessions.erase(id, { ...about, ...(owner !== undefined && { memoriesOf: owner }) })
    total = total && erased ? sum(total, erased) : (erased ?? total)
  }
  return total
}

const sum = (a: Erased, b: Erased): Erased => ({
  said: a.said + b.said,
  turns: a.turns + b.turns,
  messages: a.messages + b.messages,
  replies: a.replies + b.replies,
  approvals: a.approvals + b.approvals,
  memories: a.memories + b.memories,
  held: a.held + b.held,
  purged: b.purged,
  copies: b.copies,
})

/** A session for an operator, by the id it is kept under. */
export const shownConversation = ({ id, name, createdAtMs, lastActiveAtMs, messageCount }: SessionRow) => {
  const person = personIn(id)
  return {
    session_id: id,
    name,
    channel: person?.channel ?? null,
    sender: person?.sender ?? null,
    created_at: isoTime(createdAtMs),
    last_activity: isoTime(lastActiveAtMs),
    message_count: messageCount,
  }
}
