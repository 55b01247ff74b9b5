import { expect, test } from 'vitest'
import { inheritedSocket } from './inherited-socket.ts'

test('takes the first descriptor that systemd passes to this process', () => {
  expect(inheritedSocket({ LISTEN_FDS: '1', LISTEN_PID: '42' }, 42)).toBe(3)
})

test.each([
  ['no variables', {}],
  ['the variables of another process', { LISTEN_FDS: '1', LISTEN_PID: '41' }],
  ['no socket', { LISTEN_FDS: '0', LISTEN_PID: '42' }],
])('takes none with %s', (_, env) => {
  expect(inheritedSocket(env, 42)).toBeUndefined()
})

test('refuses several sockets', () => {
  expect(() => inheritedSocket({ LISTEN_FDS: '2', LISTEN_PID: '42' }, 42)).toThrow('passes 2 sockets')
})
