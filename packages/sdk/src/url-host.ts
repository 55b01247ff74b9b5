/** True if both URLs parse and name the same origin: scheme, host and port (§4.2: media host equals API host). */
export function sameOrigin(a: string, b: string): boolean {
  if (!URL.canParse(a) || !URL.canParse(b)) return false
  const left = new URL(a)
  return left.origin === new URL(b).origin && left.origin !== 'null'
}
