/**
 * Checks a sender against an allowlist: an empty list accepts no sender, and `*` accepts every sender. `matches` tells whether an
 * entry covers a value that it does not equal, such as a mail domain; it is never called with an empty value.
 */
export function isAllowed(
  list: readonly string[],
  value: string,
  normalise: (entry: string) => string = (s) => s,
  matches: (entry: string, value: string) => boolean = () => false,
): boolean {
  if (list.includes('*')) return true
  const wanted = normalise(value)
  return wanted !== '' && list.some((entry) => normalise(entry) === wanted || matches(entry, wanted))
}

/** Returns a telephone number as `+` and digits (E.164); empty when the text has no digit. */
export function normaliseE164(value: string): string {
  const digits = value.replace(/\D/g, '')
  return digits === '' ? '' : `+${digits}`
}
