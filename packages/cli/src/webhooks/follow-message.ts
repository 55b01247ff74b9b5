/** Follows a message through the inbox, from its request to the last of its replies. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ShownInboxEntry, ShownInboxRow } from '@sluice/delivery/inspector'
import { AppError } from '@sluice/sdk'
import { type Api, apiPath } from '../api/api.ts'

/** Reads the inbox of a daemon. */
export interface Inbox {
  /** Returns the newest messages first. */
  list(query: { readonly limit: number; readonly channel?: string; readonly before?: number }): Promise<readonly ShownInboxRow[]>
  /** Returns undefined if no message has the number. */
  get(number: number): Promise<ShownInboxEntry | undefined>
}

export const inboxOf = (api: Api): Inbox => ({
  list: async (query) => (await api.get<{ readonly messages: readonly ShownInboxRow[] }>('/api/deliveries/inbox', { ...query })).messages,
  get: (number) =>
    api.get<ShownInboxEntry>(apiPath('/api/deliveries/inbox', number)).catch((error: unknown) => {
      if (error instanceof AppError && error.code === 'not_found') return undefined
      throw error
    }),
})

const POLL_MS = 200
/** The time that a channel may need to fetch a message after a notification. */
const ARRIVAL_MS_MAX = 2000
const PAGE_ROWS = 500
/** The number of pages that are searched for an earlier message with the same id. */
const PAGES_MAX = 20

const FINAL_REPLIES = new Set(['sent', 'ambiguous', 'dead'])

/** Returns the row of a platform's message id; undefined if it has not arrived after 2 seconds. */
export async function findMessage(inbox: Inbox, channel: string, id: string, signal: AbortSignal): Promise<ShownInboxRow | undefined> {
  const endMs = performance.now() + ARRIVAL_MS_MAX
  for (;;) {
    const row = await searchInbox(inbox, channel, id)
    if (row || performance.now() > endMs || signal.aborted) return row
    await pause(POLL_MS, signal)
  }
}

/** Returns the newest row of a platform's message id; undefined if it has not arrived. */
export async function searchInbox(inbox: Inbox, channel: string, id: string): Promise<ShownInboxRow | undefined> {
  let before: number | undefined
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const rows = await inbox.list({ limit: PAGE_ROWS, channel, ...(before !== undefined && { before }) })
    // A channel may add a prefix or suffix to the id.
    const found = rows.find(({ message_id }) => message_id.includes(id))
    if (found || rows.length < PAGE_ROWS) return found
    before = rows.at(-1)?.number
  }
  return undefined
}

export interface FollowOptions {
  readonly waitMs: number
  readonly signal: AbortSignal
  /** Receives one line for each step of the message and its replies. */
  onProgress(line: string): void
}

/** Returns the message once it and its replies are over, or the time is over. */
export async function followMessage(
  inbox: Inbox,
  number: number,
  { waitMs, signal, onProgress }: FollowOptions,
): Promise<ShownInboxEntry | undefined> {
  const endMs = performance.now() + waitMs
  const reported = new Set<string>()
  for (;;) {
    const entry = await inbox.get(number)
    for (const line of entry ? progressLines(entry) : []) {
      if (!reported.has(line)) onProgress(line)
      reported.add(line)
    }
    if (!entry || isOver(entry) || performance.now() >= endMs || signal.aborted) return entry
    await pause(Math.min(POLL_MS, endMs - performance.now()), signal)
  }
}

/** Returns true if no further attempt follows, for the message and for each of its replies. */
export const isOver = ({ state, replies }: ShownInboxEntry): boolean =>
  state === 'dead' || ((state === 'done' || state === 'limited') && replies.every((reply) => FINAL_REPLIES.has(reply.state)))

const progressLines = ({ number, state, attempts, error, replies }: ShownInboxEntry): string[] => [
  `message ${number}: ${state}${attempts > 1 ? `, attempt ${attempts}` : ''}${error ? ` (${error})` : ''}`,
  ...replies.map((reply) => `reply ${reply.number}: ${reply.state}${reply.error ? ` (${reply.error})` : ''}`),
]

const pause = (ms: number, signal: AbortSignal): Promise<void> => sleep(ms, undefined, { signal }).catch(() => {})
