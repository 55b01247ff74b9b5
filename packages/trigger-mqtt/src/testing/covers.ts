/** Compares topic filters level by level, as the MQTT specification defines matching. */

/** Whether `wide` matches every topic that `narrow` matches. */
export function covers(wide: string, narrow: string): boolean {
  const wanted = wide.split('/')
  const levels = narrow.split('/')
  if (narrow.startsWith('$') && !wide.startsWith('$')) return false
  for (const [depth, level] of wanted.entries()) {
    if (level === '#') return true
    const other = levels[depth]
    if (other === undefined || other === '#') return false
    if (level !== '+' && level !== other) return false
  }
  return wanted.length === levels.length
}
