/** Finds what a person names by an id, or by a beginning of it that no other recent one shares. */
import { AppError } from '@sluice/sdk'

const NAMED_MAX = 5

/** The item with the id, or the only one whose id begins with it; undefined if there is none. Throws `invalid_request` if several do. */
export function findByBeginning<Item>(id: string, items: readonly Item[], idOf: (item: Item) => string, kind: string): Item | undefined {
  const exact = items.find((item) => idOf(item) === id)
  if (exact !== undefined || id === '') return exact
  const alike = items.filter((item) => idOf(item).startsWith(id))
  if (alike.length <= 1) return alike[0]
  const ids = alike.slice(0, NAMED_MAX).map(idOf)
  throw new AppError('invalid_request', `${alike.length} ${kind} begin with ${id}, such as ${ids.join(', ')}: type more of the id`)
}
