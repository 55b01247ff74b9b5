/** Where a request comes from, as limiters count it (§2.1 `trust_forwarded_headers`, decisions "Client address"). */
import { BlockList, isIP, isIPv4 } from 'node:net'
import type { GatewayConfig } from '@sluice/config'
import { parseNetwork } from '@sluice/config'
import { isLoopback, plainAddress } from '@sluice/kit'

/** The one thing checks need of headers. Names are in lower case. */
export interface HeaderReader {
  /** Null: there is no such header. */
  get(name: string): string | null
}

/** Headers that say a request came through a proxy. */
const FORWARDING_HEADERS = [
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
]

/** True if some proxy says it forwarded this request. */
export const isForwarded = (headers: HeaderReader): boolean => FORWARDING_HEADERS.some((name) => headers.get(name) !== null)

/** The networks whose forwarding headers count; null: no headers count. Made once per configuration. */
export type TrustedProxies = BlockList | null

export function trustedProxies(config: Pick<GatewayConfig, 'trust_forwarded_headers' | 'trusted_proxies'>): TrustedProxies {
  if (!config.trust_forwarded_headers) return null
  const list = new BlockList()
  for (const entry of config.trusted_proxies) {
    const network = parseNetwork(entry)
    if (network) list.addSubnet(network.address, network.prefix, network.family)
  }
  return list
}

/** Whether the headers of this socket address count. */
export const isTrustedPeer = (peer: string, proxies: BlockList): boolean => isTrusted(plainAddress(peer), proxies)

const isTrusted = (address: string, proxies: BlockList): boolean =>
  isIP(address) !== 0 && proxies.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')

/**
 * The key a client is counted under. If the socket peer is a trusted proxy, that is the rightmost `X-Forwarded-For` entry that
 * is no trusted proxy, or the leftmost one if all are; `X-Real-IP` counts only without `X-Forwarded-For`. Otherwise it is the
 * peer. An IPv6 address counts as its /64. An entry that is not an address makes the whole header void.
 */
export function clientAddress(peer: string, headers: HeaderReader, proxies: TrustedProxies): string {
  const address = plainAddress(peer)
  return limiterKey((proxies && isTrusted(address, proxies) && forwardedAddress(headers, proxies)) || address)
}

/** True if limiters that spare this machine may spare this request: the socket's own address, not one a header claims. */
export const isSpared = (peer: string, headers: HeaderReader, proxies: TrustedProxies): boolean =>
  isLoopback(peer) && !(proxies && isForwarded(headers))

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

/** `203.0.113.9`, `203.0.113.9:80`, `2001:db8::1`, `[2001:db8::1]:80`, each perhaps in quotes. */
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
