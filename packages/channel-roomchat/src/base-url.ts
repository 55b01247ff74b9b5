/** Normalises the addresses of servers. */
import { withoutTrailing } from '@sluice/kit'

/** Lower-cases the host and removes the default port and trailing slashes. Returns undefined if the text cannot be parsed as a URL. */
export function plainUrl(text: string): string | undefined {
  const url = URL.parse(text)
  return url ? `${url.protocol}//${url.host}${withoutTrailing(url.pathname, '/')}` : undefined
}
