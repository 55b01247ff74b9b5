/** What a part of the suite has tried. */
export interface Tried {
  /** States of the disk that were opened and audited. */
  readonly states: number
  /** One for each state that was not as it must be, with what it takes to have it again. */
  readonly problems: readonly string[]
}

const SHOWN_MAX = 3

/** None if nothing was found. */
export function problemAt(place: string, found: readonly string[]): string[] {
  if (found.length === 0) return []
  const more = found.length > SHOWN_MAX ? `; and ${found.length - SHOWN_MAX} more` : ''
  return [`${place}: ${found.slice(0, SHOWN_MAX).join('; ')}${more}`]
}
