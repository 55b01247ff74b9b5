/** The address spans are posted to: what is configured may name it already. */
import { withoutTrailing } from '@sluice/kit'
export function tracesUrl(endpoint: string): string {
  const url = new URL(endpoint)
  const path = withoutTrailing(url.pathname, '/')
  url.pathname = path.endsWith('/v1/traces') ? path : `${path}/v1/traces`
  return url.href
}
