import { expect, test } from 'vitest'
import { bridgeAddress } from './bridge-address.ts'

test.each(['', 'a b', 'host:0', 'host:70000', 'http://host', '[::1', '[:]:1', '[1.2.3.4]:1', '::1:9999', '-x:1', 'user@host:9'])(
  'what is no address is none: %j',
  (address) => {
    expect(bridgeAddress(address)).toBeUndefined()
  },
)

test.each([
  ['192.168.1.5', { host: '192.168.1.5', port: 9999 }],
  ['board.local:80', { host: 'board.local', port: 80 }],
  ['h:1', { host: 'h', port: 1 }],
  ['[::1]:9', { host: '::1', port: 9 }],
  ['[::ffff:127.0.0.1]:9', { host: '::ffff:127.0.0.1', port: 9 }],
])('an address is a host and perhaps a port: %s', (address, expected) => {
  expect(bridgeAddress(address)).toEqual(expected)
})
