/** Names close to a mistyped one. */

const SUGGESTIONS_MAX = 3
const NAME_CHARS_MAX = 64

/** Up to three of `names`, nearest first, that share most of their letters with `name`. */
export function nearest(name: string, names: readonly string[]): string[] {
  const wanted = name.slice(0, NAME_CHARS_MAX).toLowerCase()
  return names
    .map((candidate) => ({ candidate, distance: distanceOf(wanted, candidate) }))
    .filter(({ candidate, distance }) => distance <= Math.max(2, Math.ceil(candidate.length / 3)) || isPart(wanted, candidate))
    .sort((a, b) => a.distance - b.distance)
    .slice(0, SUGGESTIONS_MAX)
    .map(({ candidate }) => candidate)
}

const PART_CHARS_MIN = 3
const isPart = (wanted: string, candidate: string): boolean =>
  wanted.length >= PART_CHARS_MIN && (candidate.includes(wanted) || wanted.includes(candidate))

/** Letters to insert, delete or replace to get from one to the other. */
function distanceOf(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let line = 1; line <= from.length; line++) {
    const next = [line]
    for (let column = 1; column <= to.length; column++) {
      const replaced = (row[column - 1] ?? 0) + (from[line - 1] === to[column - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[to.length] ?? 0
}
