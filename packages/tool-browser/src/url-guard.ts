/** Restricts where a browser may go: to public addresses of the hosts in `allowed_domains`. */
import { signalScope } from '@sluice/kit'
import { AppError, type Host, isAllowedDomain, type ResolvedAddress } from '@sluice/sdk'

const LOOKUP_MS_MAX = 10_000

export interface UrlGuard {
  /** Parses the URL of a page to open. Throws `invalid_request` or `forbidden`. Does not resolve the host. */
  page(text: string): URL
  /** Throws `forbidden` for a host that is not in `allowed_domains`. `hostname` has the form of `URL.hostname`. */
  admit(hostname: string): void
  /** Returns the addresses to which a connection may go. Throws like `admit` and `Host.publicAddresses`. */
  addresses(hostname: string, signal?: AbortSignal): Promise<readonly ResolvedAddress[]>
}

export function createUrlGuard(host: Pick<Host, 'publicAddresses'>, allowed: readonly string[]): UrlGuard {
  const admit = (hostname: string) => {
    if (allowed.length === 0) throw new AppError('forbidden', 'No host is allowed: allowed_domains under [browser] is empty')
    if (!isAllowedDomain(hostname, allowed)) throw new AppError('forbidden', `'${hostname}' is not in allowed_domains under [browser]`)
  }
  return {
    admit,
    page(text) {
      const url = URL.parse(text.trim())
      if (!url) throw new AppError('invalid_request', 'The URL is not valid; it must start with https:// or http://')
      if (!isWeb(url)) throw new AppError('forbidden', `Only http and https URLs can be opened; got ${url.protocol}`)
      if (url.username !== '' || url.password !== '') throw new AppError('forbidden', 'The URL must not contain a user name or password')
      admit(url.hostname)
      return url
    },
    async addresses(hostname, signal) {
      admit(hostname)
      using limit = signalScope([signal], LOOKUP_MS_MAX)
      return await host.publicAddresses(hostname, limit.signal)
    },
  }
}

export const isWeb = ({ protocol }: URL): boolean => protocol === 'http:' || protocol === 'https:'
