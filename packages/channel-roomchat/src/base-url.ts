/** Addresses of servers, in one form for all their spellings. */
import { withoutTrailing } from '@sluice/sdk'

/** Without the default port and slashes at the end, in lower case. Undefined for a text that is no address. */
export function plainUrl(text: string): string | undefined {
  const url = URL.parse(text)
  return url ? `${url.protocol}//${url.host}${withoutTrailing(url.pathname, '/')}` : undefined
}
