/** The check of addresses accepts what Node's own list of networks accepts. */
import { BlockList } from 'node:net'
import { expect, test } from 'vitest'
import { isAddress, parseNetwork } from './network.ts'

const accepted = (address: string): boolean => {
  try {
    const isIpv6 = address.includes(':')
    new BlockList().addSubnet(address, isIpv6 ? 128 : 32, isIpv6 ? 'ipv6' : 'ipv4')
    return true
  } catch {
    return false
  }
}

test.each([
  ...[
    '127.0.0.1',
    '0.0.0.0',
    '255.255.255.255',
    '256.0.0.1',
    '1.2.3',
    '1.2.3.4.5',
    '01.2.3.4',
    '1.2.3.04',
    '1.2.3.',
    ' 1.2.3.4',
    '1.2.3.0x4',
  ],
  ...['::', '::1', '2001:db8::1', '1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:8::', '::ffff:1.2.3.4', '::1.2.3', '1::2::3', ':::'],
  ...[
    '12345::',
    'g::1',
    '[::1]',
    '::1]?',
    '::1]:80',
    'fe80::1%eth0',
    'fe80::1%',
    '1.2.3.4%eth0',
    '1.2.3.4%:5',
    '',
    ':',
    'localhost',
    'ＡＢ::1',
  ],
])('%j is an address for both or for none', (address) => {
  expect(parseNetwork(address) !== undefined).toBe(accepted(address))
})

test('a network may have a zone, and a plain address may not', () => {
  expect(parseNetwork('fe80::1%eth0/64')).toEqual({ address: 'fe80::1%eth0', prefix: 64, family: 'ipv6' })
  expect(isAddress('fe80::1%eth0')).toBe(false)
})

test.each([
  ...['10.0.0.0/33', '::1/129', '10.0.0.0/', '10.0.0.0/-1', '10.0.0.0/x', '10.0.0.0/1.5'],
  // As numbers, the first four are 0, which is every address.
  ...['10.0.0.0/ ', '10.0.0.0/\t', '10.0.0.0/-0', '::1/0x0', '10.0.0.0/ 8', '10.0.0.0/+8', '10.0.0.0/1e1', '10.0.0.0/8/16', '10.0.0.0/8/'],
])('%j is not a network', (text) => {
  expect(parseNetwork(text)).toBeUndefined()
})
