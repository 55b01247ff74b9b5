/** Reads a list of any length, page by page. */

export interface Page<Item, Cursor> {
  readonly items: readonly Item[]
  /** The place of the next page; null at the end. */
  readonly next: Cursor | null
}

/** Returns the first `limit` items, with the place after them. `read` is asked for at most `pageMax` items at once. */
export async function readPages<Item, Cursor>(
  limit: number,
  pageMax: number,
  read: (limit: number, cursor: Cursor | undefined) => Promise<Page<Item, Cursor>>,
): Promise<Page<Item, Cursor>> {
  const items: Item[] = []
  let next: Cursor | null = null
  do {
    const page: Page<Item, Cursor> = await read(Math.min(pageMax, limit - items.length), next ?? undefined)
    items.push(...page.items)
    next = page.next
  } while (next !== null && items.length < limit)
  return { items, next }
}
