/** The fewest topic filters that match the same topics: a broker may deliver a message once for each subscription it matches. */

/** True if `wide` matches every topic that `narrow` matches. */
export function covers(wide: string, narrow: string): boolean {
  const wanted = wide.split('/')
  const levels = narrow.split('/')
  // A wildcard in front does not stand for what brokers say of themselves.
  if (narrow.startsWith('$') && !wide.startsWith('$')) return false
  for (const [depth, level] of wanted.entries()) {
    if (level === '#') return true
    const other = levels[depth]
    if (other === undefined || other === '#') return false
    if (level !== '+' && level !== other) return false
  }
  return wanted.length === levels.length
}

export function widestFilters(filters: readonly string[]): string[] {
  const widest: string[] = []
  for (const filter of new Set(filters)) {
    if (widest.some((other) => covers(other, filter))) continue
    widest.splice(0, widest.length, ...widest.filter((other) => !covers(filter, other)), filter)
  }
  return widest.sort()
}
