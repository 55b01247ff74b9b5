/** What a browser may go to: hosts in `allowed_domains`, and of these public addresses alone. */

import { signalScope } from '@sluice/kit'
import { AppError, type Host, isAllowedDomain, type ResolvedAddress } from '@sluice/sdk'

const LOOKUP_MS = 10_000

export interface UrlGuard {
  /** The URL of a page to open. Throws `invalid_request` or `forbidden`; nothing is looked up. */
  page(text: string): URL
  /** Throws `forbidden` for a host that is not listed, as it stands in a URL. */
  admit(hostname: string): void
  /** Where a connection to this host may go. Throws as `admit` and `Host.publicAddresses` do. */
  addresses(hostname: string, signal?: AbortSignal): Promise<readonly ResolvedAddress[]>
}

export function createUrlGuard(host: Pick<Host, 'publicAddresses'>, allowed: readonly string[]): UrlGuard {
  const admit = (hostname: string) => {
    if (allowed.length === 0) throw new AppError('forbidden', 'no host is allowed: allowed_domains under [browser] is empty')
    if (!isAllowedDomain(hostname, allowed)) throw new AppError('forbidden', `'${hostname}' is not in allowed_domains under [browser]`)
  }
  return {
    admit,
    page(text) {
      const url = URL.parse(text.trim())
      if (!url) throw new AppError('invalid_request', 'the URL is not valid; it starts with https:// or http://')
      if (!isWeb(url)) throw new AppError('forbidden', `only http and https URLs are opened, not ${url.protocol}`)
      if (url.username !== '' || url.password !== '') {
        throw new AppError('forbidden', 'a user name or password in the URL is not allowed')
      }
      admit(url.hostname)
      return url
    },
    async addresses(hostname, signal) {
      admit(hostname)
      using limit = signalScope([signal], LOOKUP_MS)
      return await host.publicAddresses(hostname, limit.signal)
    },
  }
}

export const isWeb = ({ protocol }: URL): boolean => protocol === 'http:' || protocol === 'https:'
