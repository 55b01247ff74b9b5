/** Which addresses a stranger's URL may reach, and which are this machine. */
import { describe, expect, test } from 'vitest'
import { isLoopback, isPublicAddress, plainAddress } from './ip-address.ts'

describe('public addresses', () => {
  test.each([
    '8.8.8.8',
    '1.1.1.1',
    '93.184.216.34',
    '172.15.255.255',
    '172.32.0.1',
    '2606:4700::1111',
    '2a00:1450:4001:80b::200e',
    '::ffff:8.8.8.8',
  ])('%s is public', (address) => expect(isPublicAddress(address)).toBe(true))

  test.each([
    '0.0.0.0',
    '10.1.2.3',
    '100.64.0.1',
    '127.0.0.1',
    '127.255.255.254',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.8',
    '192.0.2.1',
    '192.168.1.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::ffff:10.0.0.1',
    '64:ff9b::7f00:1',
    'fc00::1',
    'fd12::1',
    'fe80::1',
    'fe80::1%eth0',
    'ff02::1',
    '2001:db8::1',
    '2001::1',
    '2002:7f00:1::',
    '3fff::1',
    'localhost',
    '',
    '1.2.3',
    '08.8.8.8',
    '2130706433',
  ])('%j is not', (address) => expect(isPublicAddress(address)).toBe(false))
})

describe('loopback', () => {
  test.each(['127.0.0.1', '127.9.9.9', '::1', '[::1]', '::ffff:127.0.0.1', '::ffff:7f00:0001', '0:0:0:0:0:ffff:127.0.0.1'])(
    '%s is loopback',
    (address) => expect(isLoopback(address)).toBe(true),
  )
  test.each(['128.0.0.1', '10.0.0.1', '::2', '::ffff:128.0.0.1', 'localhost', '', '127.0.0.1.evil.test'])('%j is not', (address) =>
    expect(isLoopback(address)).toBe(false),
  )
  test('mapped addresses are one with the plain ones', () => expect(plainAddress('::FFFF:192.168.0.7')).toBe('192.168.0.7'))
})
