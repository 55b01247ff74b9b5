/** Where a request comes from, as limiters count it (§2.1 `trust_forwarded_headers`, decisions "Client address"). */
import { BlockList, isIP, isIPv4 } from 'node:net'
import { isLoopback, plainAddress } from '@sluice/sdk'
import type { GatewayConfig } from '../config/core-sections.ts'
import { parseNetwork } from '../network.ts'

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

/** The networks whose forwarding headers count; null: headers are not looked at. Made once per configuration. */
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

/**
 * The key a client is counted under: the rightmost `X-Forwarded-For` entry that is no trusted proxy, else `X-Real-IP`,
 * else the socket peer. An IPv6 address counts as its /64. What is left of an entry that is no address is not believed.
 */
export function clientAddress(peer: string, headers: HeaderReader, proxies: TrustedProxies): string {
  const forwarded = proxies
    ? (fromForwardedFor(headers.get('x-forwarded-for'), proxies) ?? parseEntry(headers.get('x-real-ip') ?? ''))
    : undefined
  return limiterKey(forwarded ?? plainAddress(peer))
}

/** True if limiters that spare this machine may spare this request: the socket's own address, not one a header claims. */
export const isSpared = (peer: string, headers: HeaderReader, proxies: TrustedProxies): boolean =>
  isLoopback(peer) && !(proxies && isForwarded(headers))

function fromForwardedFor(header: string | null, proxies: BlockList): string | undefined {
  for (let end = header?.length ?? 0; header && end >= 0; ) {
    const start = header.lastIndexOf(',', end - 1)
    const address = parseEntry(header.slice(start + 1, end))
    if (!address) return undefined
    if (!proxies.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')) return address
    end = start <= 0 ? -1 : start
  }
  return undefined
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
