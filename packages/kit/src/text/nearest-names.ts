/** Known names that resemble a mistyped one. */

/** Longer names are not compared. */
const LENGTH_MAX = 64
/** Shorter names are contained in too many others. */
const PART_LENGTH_MIN = 4

export interface NearestOptions {
  /** The largest number of names to return; 3 unless given. */
  readonly namesMax?: number
}

/**
 * Returns the known names that resemble `wrong`, the nearest first: names within one edit per three letters, then names that
 * contain it or are contained in it, the shortest first. Upper case and dashes are ignored.
 */
export function nearestNames(wrong: string, known: Iterable<string>, { namesMax = 3 }: NearestOptions = {}): string[] {
  if (wrong.length > LENGTH_MAX) return []
  const wanted = plain(wrong)
  const editsMax = Math.max(1, Math.floor(wanted.length / 3))
  const candidates = [...known].filter((name) => name.length <= LENGTH_MAX)
  const edited = candidates
    .map((name) => ({ name, edits: countEdits(wanted, plain(name)) }))
    .filter(({ edits }) => edits <= editsMax)
    .sort((a, b) => a.edits - b.edits)
    .map(({ name }) => name)
  const related = candidates
    .filter((name) => isPart(wanted, plain(name)) || isPart(plain(name), wanted))
    .sort((a, b) => a.length - b.length)
  return [...new Set([...edited, ...related])].slice(0, namesMax)
}

/** Returns the nearest known name, or undefined when none resembles `wrong`. */
export const nearestName = (wrong: string, known: Iterable<string>): string | undefined => nearestNames(wrong, known)[0]

const plain = (name: string): string => name.toLowerCase().replaceAll('-', '_')

const isPart = (part: string, whole: string): boolean => part.length >= PART_LENGTH_MIN && whole.includes(part)

/** The Damerau-Levenshtein distance: inserted, deleted, replaced and swapped letters, each substring edited at most once. */
export function countEdits(a: string, b: string): number {
  let twoAgo: number[] = []
  let before = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const now = [row]
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1]
      const left = now[column - 1] ?? 0
      const above = before[column] ?? 0
      const diagonal = before[column - 1] ?? 0
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      const swap = swapped ? (twoAgo[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY
      now.push(Math.min(left + 1, above + 1, diagonal + (same ? 0 : 1), swap))
    }
    twoAgo = before
    before = now
  }
  return before[b.length] ?? 0
}
