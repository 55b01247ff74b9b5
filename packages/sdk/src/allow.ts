/** Allowlists (§5 rule 6): an empty list denies everybody, `*` allows everybody. */
export function isAllowed(list: readonly string[], value: string, normalise: (entry: string) => string = (s) => s): boolean {
  if (list.includes('*')) return true
  const wanted = normalise(value)
  return wanted !== '' && list.some((entry) => normalise(entry) === wanted)
}

/** A telephone number as `+` and digits (E.164); empty if there is no digit in it. */
export function normaliseE164(value: string): string {
  const digits = value.replace(/\D/g, '')
  return digits === '' ? '' : `+${digits}`
}
