/** Replays every message or reply that a filter selects, oldest first. */
import { setImmediate } from 'node:timers/promises'
import type { DeliveryFilter } from '@sluice/sdk'

/** The largest number of entries that one call replays. */
export const REPLAY_MAX = 10_000
const PAGE_ROWS = 500
/** The number of replays that run in parallel and may share a commit. */
const BATCH_ROWS = 100

/** The inbox or the outbox. */
export interface ReplayableRows<Row extends { readonly number: number; readonly state: string }> {
  list(filter: DeliveryFilter): Promise<readonly Row[]>
  get(number: number): Promise<Row | undefined>
  /** Resolves to false for an entry that is in another state, or whose content was deleted. */
  replay(number: number): Promise<boolean>
}

/** The entries to replay. */
export interface ReplaySelection<Row> {
  readonly states: readonly string[]
  readonly channel?: string
  isSelected(row: Row): boolean
}

export interface ReplayResult {
  /** The numbers of the replayed entries, oldest first. */
  readonly replayed: readonly number[]
  /** The numbers of the selected entries whose content was deleted. */
  readonly tooOld: readonly number[]
  /** True if more than 10,000 entries were selected: the others are unchanged. */
  readonly more: boolean
}

/** Replays the oldest 10,000 selected entries. */
export async function replaySelected<Row extends { readonly number: number; readonly state: string }>(
  rows: ReplayableRows<Row>,
  selection: ReplaySelection<Row>,
): Promise<ReplayResult> {
  const { numbers, more } = await findOldest(rows, selection)
  const replayed: number[] = []
  const tooOld: number[] = []
  for (let start = 0; start < numbers.length; start += BATCH_ROWS) {
    const batch = numbers.slice(start, start + BATCH_ROWS)
    const done = await Promise.all(batch.map((number) => rows.replay(number)))
    for (const [index, number] of batch.entries()) {
      // The replay of the first part of a reply replays its later parts too: these have left the selected states.
      const isReplayed = done[index] || !selection.states.includes((await rows.get(number))?.state ?? '')
      const list = isReplayed ? replayed : tooOld
      list.push(number)
    }
  }
  return { replayed, tooOld, more }
}

/** Returns the numbers of the oldest selected entries, oldest first, at most 10,000; `more` is true if others are selected too. */
export async function findOldest<Row extends { readonly number: number; readonly state: string }>(
  rows: Pick<ReplayableRows<Row>, 'list'>,
  { states, channel, isSelected }: ReplaySelection<Row>,
): Promise<{ readonly numbers: readonly number[]; readonly more: boolean }> {
  const found: number[] = []
  let more = false
  for (const state of new Set(states)) {
    for (let before: number | undefined; ; ) {
      const page = await rows.list({
        limit: PAGE_ROWS,
        state,
        ...(before !== undefined && { before }),
        ...(channel !== undefined && { channel }),
      })
      found.push(...page.filter(isSelected).map(({ number }) => number))
      found.sort((a, b) => b - a)
      more ||= found.length > REPLAY_MAX
      found.splice(0, found.length - REPLAY_MAX)
      before = page.at(-1)?.number
      if (page.length < PAGE_ROWS) break
      // A million entries may be in these states: other work gets its turn between the pages.
      await setImmediate()
    }
  }
  return { numbers: found.reverse(), more }
}
