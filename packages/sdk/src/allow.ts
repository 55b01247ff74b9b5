/**
 * Allowlists (§5 rule 6): an empty list denies everybody, `*` allows everybody. `matches` says whether an entry covers a
 * value without being its own form, such as a mail domain; it is never asked about an empty value.
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

/** A telephone number as `+` and digits (E.164); empty if there is no digit in it. */
export function normaliseE164(value: string): string {
  const digits = value.replace(/\D/g, '')
  return digits === '' ? '' : `+${digits}`
}
