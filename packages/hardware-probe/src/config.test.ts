import * as v from 'valibot'
import { expect, test } from 'vitest'
import { parseEndpoint, peripheralsSection } from './config.ts'

const { schema } = peripheralsSection
const takes = (probe: object) => v.is(schema, { probe })

test('nothing has to be set', () => {
  expect(v.parse(schema, {}).probe).toEqual({ boards: {}, openocd_program: 'openocd', openocd_network: false, timeout_secs: 10 })
})

test.each(['127.0.0.1:3333', 'probe.lan:65535', '[::1]:6666'])('§2.6 a server is a host and a port: %s', (gdb) => {
  expect(takes({ gdb })).toBe(true)
})

test.each(['127.0.0.1', ':3333', 'host:0', 'host:65536', '::1:3333', 'http://host:1', 'host:1/x', 'ho st:1', ''])(
  '%j is no server',
  (gdb) => {
    expect([takes({ gdb }), takes({ openocd_tcl: gdb })]).toEqual([false, false])
  },
)

test('there is one way to a board, not two', () => {
  expect(takes({ gdb: 'a:1', openocd: ['-f', 'x'] })).toBe(false)
  expect(takes({ gdb: 'a:1', boards: { board_c2: { openocd_tcl: 'b:2' } } })).toBe(true)
  expect(takes({ boards: { board_c2: { openocd_tcl: 'b:2', gdb: 'a:1' } } })).toBe(false)
})

test('only boards that can be read live have a way of their own', () => {
  expect([takes({ boards: { board_a: { gdb: 'a:1' } } }), takes({ boards: { board_c1: { gdb: 'a:1' } } })]).toEqual([false, true])
})

test('a host in brackets loses them', () => {
  expect([parseEndpoint('[::1]:6666'), parseEndpoint('a.b:1')]).toEqual([
    { host: '::1', port: 6666 },
    { host: 'a.b', port: 1 },
  ])
})
