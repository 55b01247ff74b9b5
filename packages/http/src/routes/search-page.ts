/** Pages of a list that is searched without an index: each looks at a bounded number of rows, and says where it stopped. */
import { setImmediate } from 'node:timers/promises'

const READ_ROWS = 200
/** A search gives up the event loop after this time: the text of each message may be read from a slow disk. */
const TURN_MS_MAX = 10

export interface Search<Row> {
  /** The largest number of rows of a page. */
  readonly limit: number
  /** Only rows with a smaller number. */
  readonly before?: number | undefined
  /** The largest number of rows that one page looks at. */
  readonly lookedAtMax: number
  /** Reads rows, the newest first. */
  list(page: { readonly limit: number; readonly before?: number }): Promise<readonly Row[]>
  isFound(row: Row): boolean | Promise<boolean>
}

/** Resolves to the rows that are found, and where the next page begins: null once all rows have been looked at. A page may be short, or empty. */
export async function searchPage<Row extends { readonly number: number }>({ limit, before, lookedAtMax, list, isFound }: Search<Row>) {
  const page: Row[] = []
  let next = before
  let turnFromMs = performance.now()
  const pause = async (): Promise<void> => {
    await setImmediate()
    turnFromMs = performance.now()
  }
  for (let lookedAt = 0; lookedAt < lookedAtMax; lookedAt += READ_ROWS) {
    const rows = await list({ limit: READ_ROWS, ...(next !== undefined && { before: next }) })
    for (const row of rows) {
      next = row.number
      if (await isFound(row)) page.push(row)
      if (page.length === limit) return { page, next: next > 1 ? next : null }
      if (performance.now() - turnFromMs > TURN_MS_MAX) await pause()
    }
    if (rows.length < READ_ROWS) return { page, next: null }
    await pause()
  }
  return { page, next: next ?? null }
}

/** Returns a test whether a text has these words in it, in any case. */
export function contains(words: string | undefined): (text: string | null | undefined) => boolean {
  const wanted = words?.toLowerCase()
  return (text) => wanted === undefined || (text?.toLowerCase().includes(wanted) ?? false)
}
