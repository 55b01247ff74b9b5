/** Tells whether a list such as `allowed_domains` covers a host. */

/** Returns one form for a name in any script and its punycode. `example.com` and `*.example.com` mean the same. */
export function isAllowedDomain(hostname: string, allowed: readonly string[]): boolean {
  const host = hostname.replace(/\.$/, '')
  return allowed.some((entry) => {
    if (entry === '*') return true
    const domain = URL.parse(`http://${entry.replace(/^\*\./, '')}`)?.hostname
    return domain !== undefined && (host === domain || host.endsWith(`.${domain}`))
  })
}
