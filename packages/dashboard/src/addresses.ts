/** The addresses at which a browser reaches this daemon. */
import { networkInterfaces } from 'node:os'
import { isLoopback, withoutTrailing } from '@sluice/kit'
import type { Addresses } from '@sluice/sdk'

export interface PageAddresses {
  /** For a browser on this machine: `localhost` wherever possible, because passkeys do not work on 127.0.0.1. */
  readonly here: string
  /** For another device, such as a phone; undefined if no other device can reach the daemon. */
  readonly elsewhere: string | undefined
}

/** The name of the code in the fragment. */
const FRAGMENT = '#sign-in='

/** Returns the link with a code, which is in the fragment: no browser sends it to a server. */
export const linkAt = (address: string, code: string): string => `${address}/${FRAGMENT}${code}`

const WILDCARDS = ['0.0.0.0', '[::]']

/** Undefined while the daemon has no address. No address ends with a slash. */
export function pageAddresses(
  { listening, public: publicUrl }: Addresses,
  lan: () => string | undefined = lanAddress,
): PageAddresses | undefined {
  const proxied = publicUrl === null ? undefined : withoutTrailing(publicUrl, '/')
  if (listening === null) return proxied === undefined ? undefined : { here: proxied, elsewhere: proxied }
  const { hostname, port } = new URL(listening)
  const isWildcard = WILDCARDS.includes(hostname)
  const isLocal = hostname === 'localhost' || isLoopback(hostname.replace(/^\[|\]$/g, ''))
  const here = isWildcard || isLocal ? `http://localhost:${port || '80'}` : withoutTrailing(listening, '/')
  const address = isWildcard ? lan() : undefined
  const exposed = isLocal ? undefined : isWildcard ? address && `http://${address}:${port || '80'}` : here
  return { here, elsewhere: proxied ?? exposed }
}

/** The first address of this machine in its network. */
function lanAddress(): string | undefined {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
  return addresses.find(({ internal, family }) => !internal && family === 'IPv4')?.address
}
