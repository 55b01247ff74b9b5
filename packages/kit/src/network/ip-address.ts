/** Recognizes IP addresses of the public Internet, for guards against requests to internal hosts (SSRF). */
import { type BlockList, isIP, isIPv4 } from 'node:net'

/** Special-purpose blocks of the IANA registries. An untrusted URL must not reach them. */
const NOT_PUBLIC: readonly [network: string, prefix: number][] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
]

/** Public IPv6 addresses are global unicast (2000::/3) without these blocks. */
const NOT_PUBLIC_6: readonly [network: string, prefix: number][] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
]

/** Returns the list, which is made at the first call: short commands need no address, and the class is in a module that loads for 8 ms. */
function subnets(entries: readonly (readonly [string, number])[], family: 'ipv4' | 'ipv6'): () => BlockList {
  let list: BlockList | undefined
  return () => {
    if (list) return list
    const { BlockList } = process.getBuiltinModule('node:net')
    list = new BlockList()
    for (const [network, prefix] of entries) list.addSubnet(network, prefix, family)
    return list
  }
}
const special4 = subnets(NOT_PUBLIC, 'ipv4')
const special6 = subnets(NOT_PUBLIC_6, 'ipv6')
const global6 = subnets([['2000::', 3]], 'ipv6')
const loopback4 = subnets([['127.0.0.0', 8]], 'ipv4')

/** Returns the IPv4 address inside an IPv4-mapped IPv6 one, else the address itself; without brackets and zone. */
export function plainAddress(address: string): string {
  const bare = address.replace(/^\[|\]$/g, '').split('%', 1)[0] ?? ''
  const mapped = /^(?:0*:){0,5}:?ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(bare)?.[1]
  if (mapped && isIPv4(mapped)) return mapped
  const hex = /^(?:0*:){0,5}:?ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/i.exec(bare)
  if (!hex?.[1] || !hex[2]) return bare
  const [high, low] = [Number.parseInt(hex[1], 16), Number.parseInt(hex[2], 16)]
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
}

/** Returns true for 127.0.0.0/8 and ::1, IPv4-mapped spellings included. */
export function isLoopback(address: string): boolean {
  const plain = plainAddress(address)
  return isIPv4(plain) ? loopback4().check(plain, 'ipv4') : plain === '::1' || plain === '0:0:0:0:0:0:0:1'
}

/** Returns true for an address of the public Internet, and false for a private or special address and for any other text. */
export function isPublicAddress(address: string): boolean {
  const plain = plainAddress(address)
  if (isIPv4(plain)) return !special4().check(plain, 'ipv4')
  return isIP(plain) === 6 && global6().check(plain, 'ipv6') && !special6().check(plain, 'ipv6')
}
