/** Where the sidecar of `computer_use` may be: here, unless the operator said otherwise, and then only behind TLS. */
import { isIP } from 'node:net'
import { isPublicAddress } from '@sluice/kit'

export interface Endpoint {
  readonly endpoint: string
  readonly allow_remote_endpoint: boolean
}

/** What is wrong with it; undefined if nothing is. A name other than `localhost` could mean any address, so it is remote. */
export function checkEndpoint({ endpoint, allow_remote_endpoint }: Endpoint): string | undefined {
  const url = URL.parse(endpoint)
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) return 'endpoint is not an http or https URL'
  if (url.username !== '' || url.password !== '') return 'endpoint may not hold a user name or password: use api_key'
  if (isPrivate(url.hostname)) return undefined
  if (!allow_remote_endpoint) return 'endpoint is not on a private address, and allow_remote_endpoint is false'
  return url.protocol === 'https:' ? undefined : 'endpoint is not on a private address, so it must be https'
}

function isPrivate(hostname: string): boolean {
  const address = hostname.replace(/^\[|\]$/g, '')
  return isIP(address) ? !isPublicAddress(address) : address === 'localhost'
}
