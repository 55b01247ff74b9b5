/** Tells whether both URLs are valid and have the same origin: scheme, host and port (docs/contract.md#media). */
export function sameOrigin(a: string, b: string): boolean {
  if (!URL.canParse(a) || !URL.canParse(b)) return false
  const left = new URL(a)
  return left.origin === new URL(b).origin && left.origin !== 'null'
}
