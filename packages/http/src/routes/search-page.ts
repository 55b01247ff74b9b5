/** Pages of a list that is searched without an index: each looks at a bounded number of rows, and says where it stopped. */
import { setImmediate } from 'node:timers/promises'

const READ_ROWS = 200
/** A search gives up the event loop after this time: the text of each message may be read from a slow disk. */
const TURN_MS_MAX = 10

export interface Search<Row, Place> {
  /** The largest number of rows of a page. */
  readonly limit: number
  /** Only rows after this one, in the order of the list. */
  readonly before?: Place | undefined
  /** The largest number of rows that one page looks at. */
  readonly lookedAtMax: number
  /** The number of rows that are read at once; 200 when absent. */
  readonly readRows?: number
  /** Reads rows, the newest first. */
  list(page: { readonly limit: number; readonly before?: Place }): Promise<readonly Row[]>
  placeOf(row: Row): Place
  isFound(row: Row): boolean | Promise<boolean>
}

/** Resolves to the rows that are found, and where the next page begins: null once all rows have been looked at. A page may be short, or empty. */
export async function searchPage<Row, Place>(search: Search<Row, Place>) {
  const { limit, before, lookedAtMax, readRows = READ_ROWS, list, placeOf, isFound } = search
  const page: Row[] = []
  let next = before
  let turnFromMs = performance.now()
  const pause = async (): Promise<void> => {
    await setImmediate()
    turnFromMs = performance.now()
  }
  for (let lookedAt = 0; lookedAt < lookedAtMax; lookedAt += readRows) {
    const rows = await list({ limit: readRows, ...(next !== undefined && { before: next }) })
    for (const row of rows) {
      next = placeOf(row)
      if (await isFound(row)) page.push(row)
      if (page.length === limit) return { page, next }
      if (performance.now() - turnFromMs > TURN_MS_MAX) await pause()
    }
    if (rows.length < readRows) return { page, next: null }
    await pause()
  }
  return { page, next: next ?? null }
}

/** Returns a test whether a text has these words in it, in any case. */
export function contains(words: string | undefined): (text: string | null | undefined) => boolean {
  const wanted = words?.toLowerCase()
  return (text) => wanted === undefined || (text?.toLowerCase().includes(wanted) ?? false)
}
