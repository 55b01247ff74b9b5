import { gatewaySection } from '@sluice/config'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { clientAddress, isForwarded, isSpared, trustedProxies } from './client-address.ts'

const TRUSTED = ['127.0.0.0/8', '::1/128', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7', 'fe80::/10']
const on = trustedProxies({ trust_forwarded_headers: true, trusted_proxies: TRUSTED })
const off = trustedProxies({ trust_forwarded_headers: false, trusted_proxies: TRUSTED })
const forwardedFor = (value: string, more: Record<string, string> = {}) => new Headers({ 'x-forwarded-for': value, ...more })

describe('the client address', () => {
  test('is the socket peer while trust_forwarded_headers is off', () => {
    expect(clientAddress('203.0.113.9', forwardedFor('198.51.100.1', { 'x-real-ip': '198.51.100.2' }), off)).toBe('203.0.113.9')
  })

  test.each([
    ['the rightmost entry that is no trusted proxy', '1.1.1.1, 198.51.100.7, 10.0.0.3', '198.51.100.7'],
    ['not what a client prepends', '127.0.0.1, 8.8.8.8', '8.8.8.8'],
    ['an entry in quotes with a port', '"198.51.100.7:1234"', '198.51.100.7'],
    ['an IPv6 entry in brackets with a port, as its /64', '"[2001:db8:1:2:3::9]:443"', '2001:db8:1:2::/64'],
    ['an IPv4-mapped entry as IPv4', '::ffff:198.51.100.7', '198.51.100.7'],
    ['the leftmost entry, when all are trusted proxies', '10.0.0.1, 192.168.3.4', '10.0.0.1'],
    ['the peer, when the rightmost untrusted entry is no address', '198.51.100.7, unknown, 10.0.0.1', '127.0.0.1'],
    ['the peer, for an empty header', '', '127.0.0.1'],
    ['the rightmost entry that is no trusted proxy, whatever stands left of it', 'unknown, 198.51.100.7', '198.51.100.7'],
    ['the peer, for commas and nothing else', ',,,', '127.0.0.1'],
  ])('is %s', (_rule, header, wanted) => {
    expect(clientAddress('127.0.0.1', forwardedFor(header), on)).toBe(wanted)
  })

  test('is the socket peer unless it is a trusted proxy', () => {
    expect(clientAddress('203.0.113.9', forwardedFor('198.51.100.1', { 'x-real-ip': '198.51.100.2' }), on)).toBe('203.0.113.9')
    expect(clientAddress('203.0.113.9', new Headers({ 'x-real-ip': '198.51.100.2' }), on)).toBe('203.0.113.9')
  })

  test('trusts only proxies on loopback by default', () => {
    const { trusted_proxies } = v.parse(gatewaySection.schema, {})
    const proxies = trustedProxies({ trust_forwarded_headers: true, trusted_proxies })
    const header = forwardedFor('198.51.100.7')
    for (const peer of ['127.0.0.1', '::1', '::ffff:127.0.0.1']) expect(clientAddress(peer, header, proxies)).toBe('198.51.100.7')
    for (const peer of ['10.0.0.1', '192.168.1.1', '172.16.0.1']) expect(clientAddress(peer, header, proxies)).toBe(peer)
  })

  test('is taken from X-Real-IP only without X-Forwarded-For', () => {
    expect(clientAddress('127.0.0.1', new Headers({ 'x-real-ip': '198.51.100.2' }), on)).toBe('198.51.100.2')
    expect(clientAddress('127.0.0.1', forwardedFor('10.0.0.1', { 'x-real-ip': '198.51.100.2' }), on)).toBe('10.0.0.1')
    expect(clientAddress('127.0.0.1', forwardedFor('', { 'x-real-ip': '198.51.100.2' }), on)).toBe('127.0.0.1')
    expect(clientAddress('127.0.0.1', new Headers({ 'x-real-ip': 'no address' }), on)).toBe('127.0.0.1')
  })

  test.each([
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:0002::9', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['64:ff9b::1.2.3.4', '64:ff9b:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['::ffff:cb00:7109', '203.0.113.9'],
    ['', 'unknown'],
  ])('counts the peer %s as %s', (peer, wanted) => {
    expect(clientAddress(peer, new Headers(), off)).toBe(wanted)
  })
})

test('trusted_proxies must be networks or single addresses', () => {
  for (const entry of ['nonsense', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/x', '::1/129', '10.0.0.0/-1', '']) {
    expect(v.safeParse(gatewaySection.schema, { trusted_proxies: [entry] }).success, entry).toBe(false)
  }
  const single = trustedProxies({ trust_forwarded_headers: true, trusted_proxies: ['198.51.100.7'] })
  expect(clientAddress('198.51.100.7', forwardedFor('1.1.1.1, 198.51.100.7'), single)).toBe('1.1.1.1')
})

test('isSpared reads the socket peer, not a header that claims loopback', () => {
  expect(isSpared('127.0.0.1', new Headers(), on)).toBe(true)
  expect(isSpared('::ffff:127.0.0.1', new Headers(), on)).toBe(true)
  expect(isSpared('203.0.113.9', forwardedFor('127.0.0.1'), on)).toBe(false)
  expect(isSpared('127.0.0.1', new Headers({ 'x-real-ip': '127.0.0.1' }), on)).toBe(false)
  expect(isSpared('127.0.0.1', forwardedFor('198.51.100.7'), off)).toBe(true)
})

test('isForwarded knows each header that proxies set', () => {
  for (const name of ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'])
    expect(isForwarded(new Headers({ [name]: 'x' })), name).toBe(true)
  expect(isForwarded(new Headers({ host: 'x' }))).toBe(false)
})

test.each([
  'client-ip',
  'forwarded-for',
  'x-forwarded-uri',
  'x-forwarded-client-cert',
  'fly-client-ip',
  'x-azure-clientip',
  'cdn-loop',
  'X-Forwarded-Port',
  'x-forwarded-server',
  'X-Forwarded',
  'Via',
  'Forwarded',
  'X-Cluster-Client-IP',
])('%s says that a request came through a proxy', (name) => expect(isForwarded(new Headers({ [name]: 'x' }))).toBe(true))
