/** Whether a host is one of `allowed_domains`, wherever a section has such a key. */

/** Both spellings of a name, in letters of any script and in punycode, are one; so are `example.com` and `*.example.com`. */
export function isAllowedDomain(hostname: string, allowed: readonly string[]): boolean {
  const host = hostname.replace(/\.$/, '')
  return allowed.some((entry) => {
    if (entry === '*') return true
    const domain = URL.parse(`http://${entry.replace(/^\*\./, '')}`)?.hostname
    return domain !== undefined && (host === domain || host.endsWith(`.${domain}`))
  })
}
