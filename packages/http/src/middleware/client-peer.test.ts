import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import { ClientPeers, ForwardingWatch } from './client-peer.ts'

const forwarded = new Headers({ 'x-forwarded-for': '198.51.100.7' })

function arrange(trust_forwarded_headers: boolean) {
  const host = testHost()
  const forwarding = new ForwardingWatch(host.log)
  const peers = () => new ClientPeers({ trust_forwarded_headers, trusted_proxies: ['127.0.0.0/8'] }, forwarding)
  return { forwarding, peers, warnings: () => host.logs.filter(({ level }) => level === 'warn') }
}

test('warns once of an ignored header from a peer that is not a trusted proxy', () => {
  const { peers, forwarding, warnings } = arrange(true)
  for (let configuration = 0; configuration < 2; configuration++) {
    expect(peers().look('203.0.113.9', forwarded)).toEqual({ address: '203.0.113.9', spared: false, isSecure: false })
  }
  expect(warnings()).toMatchObject([{ message: expect.stringContaining('trusted_proxies'), fields: { peer: '203.0.113.9' } }])
  expect([...forwarding.ignored]).toEqual(['trusted_proxies'])
})

test('warns once of a forwarding header while trust_forwarded_headers is off', () => {
  const { peers, forwarding, warnings } = arrange(false)
  for (let request = 0; request < 2; request++) expect(peers().look('127.0.0.1', forwarded).address).toBe('127.0.0.1')
  expect(warnings()).toMatchObject([{ message: expect.stringContaining('share one rate limit') }])
  expect([...forwarding.ignored]).toEqual(['trust_forwarded_headers'])
})

test('does not warn of a trusted proxy or a direct request', () => {
  const { peers, warnings } = arrange(true)
  expect(peers().look('127.0.0.1', forwarded)).toEqual({ address: '198.51.100.7', spared: false, isSecure: false })
  expect(peers().look('203.0.113.9', new Headers())).toEqual({ address: '203.0.113.9', spared: false, isSecure: false })
  expect(warnings()).toEqual([])
})

test('reports a forwarding header of a later request on a connection', () => {
  const { peers, warnings } = arrange(false)
  const made = peers()
  made.look('127.0.0.1', new Headers())
  made.notice('127.0.0.1', new Headers())
  expect(warnings()).toEqual([])
  made.notice('127.0.0.1', forwarded)
  expect(warnings()).toMatchObject([{ message: expect.stringContaining('share one rate limit') }])
})

test('takes the word of a trusted proxy alone that the client came over TLS', () => {
  const secure = new Headers({ 'x-forwarded-proto': 'https, http' })
  expect(arrange(true).peers().look('127.0.0.1', secure).isSecure).toBe(true)
  expect(arrange(true).peers().look('203.0.113.9', secure).isSecure).toBe(false)
  expect(arrange(false).peers().look('127.0.0.1', secure).isSecure).toBe(false)
  expect(
    arrange(true)
      .peers()
      .look('127.0.0.1', new Headers({ 'x-forwarded-proto': 'http' })).isSecure,
  ).toBe(false)
  expect(arrange(false).peers().look('127.0.0.1', new Headers(), true).isSecure).toBe(true)
})
