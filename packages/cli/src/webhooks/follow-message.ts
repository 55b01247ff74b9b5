/** Follows a message through the store, from its request to the last of its replies. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { InboxEntry, InboxRow, InboxStore } from '@sluice/sdk'

const POLL_MS = 200
/** A channel that is told of messages and fetches them needs a moment. */
const SEEN_MS_MAX = 2000
const PAGE_ROWS = 500
/** How far back a message that came before is looked for. */
const PAGES_MAX = 20

const FINAL_REPLIES = new Set(['sent', 'ambiguous', 'dead'])

/** The row of a provider's message id; undefined if there is none soon. */
export async function findMessage(inbox: InboxStore, channel: string, id: string, signal: AbortSignal): Promise<InboxRow | undefined> {
  const endMs = performance.now() + SEEN_MS_MAX
  for (;;) {
    const row = await lookFor(inbox, channel, id)
    if (row || performance.now() > endMs || signal.aborted) return row
    await pause(POLL_MS, signal)
  }
}

async function lookFor(inbox: InboxStore, channel: string, id: string): Promise<InboxRow | undefined> {
  let before: number | undefined
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const rows = await inbox.list({ limit: PAGE_ROWS, channel, ...(before !== undefined && { before }) })
    // A channel may put something of its own around the id.
    const found = rows.find(({ messageId }) => messageId.includes(id))
    if (found || rows.length < PAGE_ROWS) return found
    before = rows.at(-1)?.number
  }
  return undefined
}

export interface Following {
  readonly waitMs: number
  readonly signal: AbortSignal
  /** Told of each step. */
  tell(line: string): void
}

/** The message as it is once it and its replies are over, or the time is. */
export async function followMessage(
  inbox: InboxStore,
  number: number,
  { waitMs, signal, tell }: Following,
): Promise<InboxEntry | undefined> {
  const endMs = performance.now() + waitMs
  const told = new Set<string>()
  for (;;) {
    const entry = await inbox.get(number)
    for (const line of entry ? steps(entry) : []) {
      if (!told.has(line)) tell(line)
      told.add(line)
    }
    if (!entry || isOver(entry) || performance.now() >= endMs || signal.aborted) return entry
    await pause(Math.min(POLL_MS, endMs - performance.now()), signal)
  }
}

export const isOver = ({ state, replies }: InboxEntry): boolean =>
  state === 'dead' || (state === 'done' && replies.every((reply) => FINAL_REPLIES.has(reply.state)))

const steps = ({ number, state, attempts, error, replies }: InboxEntry): string[] => [
  `message ${number}: ${state}${attempts > 1 ? `, attempt ${attempts}` : ''}${error ? ` (${error})` : ''}`,
  ...replies.map((reply) => `reply ${reply.number}: ${reply.state}${reply.error ? ` (${reply.error})` : ''}`),
]

const pause = (ms: number, signal: AbortSignal): Promise<void> => sleep(ms, undefined, { signal }).catch(() => {})
