/** Finds an entry by its id, or by a prefix of the id, as a person types it. */
import { AppError } from '@sluice/sdk'

/** The largest number of ids that an error lists. */
const LISTED_MAX = 5

/**
 * Returns the item with this id, or the only item whose id begins with it; undefined without a match. Throws `invalid_request`
 * if several ids begin with it; `plural` names the items in the error, such as `runs`.
 */
export function findByPrefix<Item>(id: string, items: readonly Item[], idOf: (item: Item) => string, plural: string): Item | undefined {
  const exact = items.find((item) => idOf(item) === id)
  if (exact !== undefined || id === '') return exact
  const matches = items.filter((item) => idOf(item).startsWith(id))
  if (matches.length <= 1) return matches[0]
  const ids = matches.slice(0, LISTED_MAX).map(idOf)
  throw new AppError('invalid_request', `${matches.length} ${plural} begin with ${id}, such as ${ids.join(', ')}: type more of the id`)
}
