/** Tells whether a text names a time zone. */

/** Returns whether the runtime knows the time zone. */
export function isTimezone(timezone: string): boolean {
  // The lookup below is slow, and most triggers name this zone.
  if (timezone === 'UTC') return true
  try {
    new Intl.DateTimeFormat('en', { timeZone: timezone })
    return true
  } catch {
    return false
  }
}
