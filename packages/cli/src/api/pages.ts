/** Reads a list of any length, page by page. */

export interface Page<Item, Cursor> {
  readonly items: readonly Item[]
  /** The place of the next page; null at the end. */
  readonly next: Cursor | null
}

/** A search whose words are rare reads page after page without an item. After this time without one, the person decides whether it goes on. */
const FRUITLESS_MS_MAX = 10_000

/**
 * Returns the first `limit` items, with the place after them; fewer when none is found for 10 seconds. `read` is asked for at most `pageMax`
 * items at once.
 */
export async function readPages<Item, Cursor>(
  limit: number,
  pageMax: number,
  read: (limit: number, cursor: Cursor | undefined) => Promise<Page<Item, Cursor>>,
  nowMs: () => number = () => performance.now(),
): Promise<Page<Item, Cursor>> {
  let foundMs = nowMs()
  const items: Item[] = []
  let next: Cursor | null = null
  do {
    const page: Page<Item, Cursor> = await read(Math.min(pageMax, limit - items.length), next ?? undefined)
    items.push(...page.items)
    next = page.next
    if (page.items.length > 0) foundMs = nowMs()
  } while (next !== null && items.length < limit && nowMs() - foundMs < FRUITLESS_MS_MAX)
  return { items, next }
}
