/** The known name a mistyped one was probably meant to be. */

/** Longer names are not compared. */
const LENGTH_MAX = 64
/** A shorter name is part of too many others. */
const PART_LENGTH_MIN = 4

const plain = (name: string): string => name.toLowerCase().replaceAll('-', '_')

/**
 * The closest of the names, if it is close: one edit for each three letters, a swap of neighbours being one. Otherwise the
 * shortest name that contains the wrong one, such as `rate_limit_per_minute` for `rate_limit`.
 */
export function nearestName(wrong: string, known: Iterable<string>): string | undefined {
  if (wrong.length > LENGTH_MAX) return undefined
  const names = [...known]
  return closestOf(wrong, names) ?? longerOf(wrong, names)
}

function longerOf(wrong: string, known: readonly string[]): string | undefined {
  if (wrong.length < PART_LENGTH_MIN) return undefined
  const containing = known.filter((name) => name.length <= LENGTH_MAX && plain(name).includes(plain(wrong)))
  return containing.toSorted((a, b) => a.length - b.length)[0]
}

function closestOf(wrong: string, known: readonly string[]): string | undefined {
  let best: string | undefined
  let bestEdits = Math.max(1, Math.floor(wrong.length / 3)) + 1
  for (const name of known) {
    const edits = Math.abs(name.length - wrong.length) < bestEdits ? countEdits(plain(wrong), plain(name)) : bestEdits
    if (edits < bestEdits) {
      best = name
      bestEdits = edits
    }
  }
  return best
}

/** Damerau-Levenshtein distance, each substring edited at most once. */
function countEdits(a: string, b: string): number {
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
