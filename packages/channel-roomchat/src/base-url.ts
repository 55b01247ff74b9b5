/** One form for the spellings of a server's address: case, default port and slashes at the end say nothing. Undefined for what is no address. */
import { withoutTrailing } from '@sluice/sdk'
export function plainUrl(text: string): string | undefined {
  const url = URL.parse(text)
  return url ? `${url.protocol}//${url.host}${withoutTrailing(url.pathname, '/')}` : undefined
}
