/** Reads the view of a store that the judges need: every row of the inbox and of the outbox, and what people said in each session. */
import type { InboxEntry, OutboxRow, Store } from '@sluice/sdk'
import { marksIn } from '../marks.ts'
import type { Place } from '../place.ts'
import { open } from '../read-store.ts'

export interface SessionSeen {
  readonly id: string
  /** The text of each message of a person, oldest first. */
  readonly said: readonly string[]
}

export interface WordsView {
  readonly problems: readonly string[]
  readonly inbox: readonly InboxEntry[]
  readonly outbox: readonly OutboxRow[]
  readonly sessions: readonly SessionSeen[]
}

const PAGE = 1000
const EVERYTHING = 1_000_000
/** A line in which the agent tells of a change of an earlier message. */
const TOLD_CHANGE = /^\(.*\ban earlier message\b.*$/gim

export async function readWords(place: Place): Promise<WordsView> {
  const store = await open(place)
  try {
    const inbox = await allOf(store.inbox)
    const entries = await Promise.all(inbox.map(({ number }) => store.inbox.get(number)))
    return {
      problems: (await store.check()).map(({ detail }) => detail),
      inbox: entries.flatMap((entry) => entry ?? []),
      outbox: await allOf(store.outbox),
      sessions: await sessionsOf(store),
    }
  } finally {
    await store.close()
  }
}

/** The text without the lines that tell of changes of earlier messages. */
export const withoutChanges = (text: string): string => text.replace(TOLD_CHANGE, '')

/** The marks of a person's words. Marks in a notice about the change of an earlier message do not count. */
export const saidMarks = (text: string): string[] => marksIn(withoutChanges(text))

/** The changes of which a text tells. */
export const toldChanges = (text: string): readonly string[] => text.match(TOLD_CHANGE) ?? []

async function allOf<Row extends { readonly number: number }>(box: {
  list(filter: { limit: number; before?: number }): Promise<Row[]>
}): Promise<Row[]> {
  const rows: Row[] = []
  for (;;) {
    const before = rows.at(-1)?.number
    const page = await box.list({ limit: PAGE, ...(before !== undefined && { before }) })
    rows.push(...page)
    if (page.length < PAGE) return rows.reverse()
  }
}

async function sessionsOf({ sessions }: Store): Promise<SessionSeen[]> {
  const rows = await sessions.list({ limit: EVERYTHING })
  return Promise.all(
    rows.map(async ({ id }) => ({
      id,
      said: (await sessions.history(id, EVERYTHING))
        .filter(({ role }) => role === 'user')
        .map(({ content }) => (typeof content === 'string' ? content : content.map((part) => ('text' in part ? part.text : '')).join(''))),
    })),
  )
}
