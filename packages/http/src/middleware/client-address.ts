/** The address of the client of a request, as rate limiters count it; see docs/contract.md#limits. */
import { BlockList, isIP, isIPv4 } from 'node:net'
import { parseNetwork } from '@sluice/config'
import { isLoopback, plainAddress } from '@sluice/kit'

/** Reads request headers. Names are in lower case. */
export interface HeaderReader {
  /** Null: the request has no such header. */
  get(name: string): string | null
}

/** All headers of a request. */
export interface RequestHeaders extends HeaderReader {
  keys(): Iterable<string>
}

/** Headers by which a proxy says that it forwarded a request. */
const FORWARDING_HEADERS = new Set([
  'forwarded',
  'x-forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-forwarded-protocol',
  'x-forwarded-port',
  'x-forwarded-server',
  'x-forwarded-prefix',
  'x-forwarded-by',
  'x-forwarded-scheme',
  'x-forwarded-ssl',
  'x-forwarded-uri',
  'x-forwarded-client-cert',
  'x-original-forwarded-for',
  'x-original-host',
  'x-cluster-client-ip',
  'x-envoy-external-address',
  'fastly-client-ip',
  'x-real-ip',
  'x-client-ip',
  'true-client-ip',
  'cf-connecting-ip',
  'client-ip',
  'forwarded-for',
  'fly-client-ip',
  'x-azure-clientip',
  'cdn-loop',
  'via',
])

/** True if a proxy says that it forwarded this request. */
export function isForwarded(headers: Pick<RequestHeaders, 'keys'>): boolean {
  // A request has fewer headers than there are such names.
  for (const name of headers.keys()) if (FORWARDING_HEADERS.has(name)) return true
  return false
}

/** The networks whose forwarding headers are trusted; null: no such header is. Made once per configuration. */
export type TrustedProxies = BlockList | null

/** The part of `[gateway]` about proxies. */
export interface ProxySettings {
  readonly trust_forwarded_headers: boolean
  readonly trusted_proxies: readonly string[]
}

export function trustedProxies(settings: ProxySettings): TrustedProxies {
  if (!settings.trust_forwarded_headers) return null
  const list = new BlockList()
  for (const entry of settings.trusted_proxies) {
    const network = parseNetwork(entry)
    if (network) list.addSubnet(network.address, network.prefix, network.family)
  }
  return list
}

/** True if the forwarding headers of this peer are trusted. */
export const isTrustedPeer = (peer: string, proxies: BlockList): boolean => isTrusted(plainAddress(peer), proxies)

const isTrusted = (address: string, proxies: BlockList): boolean =>
  isIP(address) !== 0 && proxies.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')

/**
 * The key that limiters count a client by. For a peer that is a trusted proxy, it is the rightmost entry of `X-Forwarded-For`
 * that is not a trusted proxy, or the leftmost entry if all are; `X-Real-IP` is read only without `X-Forwarded-For`. For any
 * other peer it is the peer's own address. An IPv6 address counts as its /64. An entry that is not an address voids the header.
 */
export function clientAddress(peer: string, headers: HeaderReader, proxies: TrustedProxies): string {
  const address = plainAddress(peer)
  return limiterKey((proxies && isTrusted(address, proxies) && forwardedAddress(headers, proxies)) || address)
}

/** True if limiters that spare this machine may spare this request: the peer itself is on loopback, whatever a header claims. */
export const isSpared = (peer: string, headers: RequestHeaders, proxies: TrustedProxies): boolean =>
  isLoopback(peer) && !(proxies && isForwarded(headers))

/** True if a trusted proxy says that the client reached it over TLS. With several proxies, the first one counts. */
export const isForwardedSecurely = (peer: string, headers: RequestHeaders, proxies: TrustedProxies): boolean =>
  proxies !== null && isTrustedPeer(peer, proxies) && /^\s*https\s*(?:,|$)/i.test(headers.get('x-forwarded-proto') ?? '')

function forwardedAddress(headers: HeaderReader, proxies: BlockList): string | undefined {
  const forwarded = headers.get('x-forwarded-for')
  if (forwarded === null) return parseEntry(headers.get('x-real-ip') ?? '')
  let leftmost: string | undefined
  for (const entry of forwarded.split(',').toReversed()) {
    leftmost = parseEntry(entry)
    if (!leftmost || !isTrusted(leftmost, proxies)) return leftmost
  }
  return leftmost
}

/** Reads `203.0.113.9`, `203.0.113.9:80`, `2001:db8::1` and `[2001:db8::1]:80`, with or without quotes. */
function parseEntry(entry: string): string | undefined {
  const bare = entry.trim().replace(/^"(.*)"$/, '$1')
  const bracketed = /^\[([^\]]*)\](?::\d+)?$/.exec(bare)?.[1]
  const address = plainAddress(bracketed ?? bare.replace(/^([\d.]+):\d+$/, '$1'))
  return isIP(address) ? address : undefined
}

/** The IPv4 address, the /64 of an IPv6 one, or `unknown`. */
function limiterKey(address: string): string {
  if (isIPv4(address)) return address
  return isIP(address) ? `${network64(address)}::/64` : 'unknown'
}

function network64(address: string): string {
  const [head = '', tail] = address.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail ? tail.split(':') : []
  const missing = tail === undefined ? 0 : 8 - left.length - right.length - (address.includes('.') ? 1 : 0)
  const groups = [...left, ...Array<string>(Math.max(0, missing)).fill('0'), ...right]
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')
}
