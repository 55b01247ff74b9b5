import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { parseEndpoint, peripheralsSection } from './config.ts'

const { schema } = peripheralsSection
const isValid = (probe: object) => v.is(schema, { probe })

describe('[peripherals.probe]', () => {
  test('has a default for every key', () => {
    expect(v.parse(schema, {}).probe).toEqual({ boards: {}, openocd_program: 'openocd', openocd_network: false, timeout_secs: 10 })
  })

  test.each(['127.0.0.1:3333', 'probe.lan:65535', '[::1]:6666'])('accepts the server %s', (gdb) => {
    expect(isValid({ gdb })).toBe(true)
  })

  test.each(['127.0.0.1', ':3333', 'host:0', 'host:65536', '::1:3333', 'http://host:1', 'host:1/x', 'ho st:1', ''])(
    'rejects the server %j',
    (gdb) => {
      expect([isValid({ gdb }), isValid({ openocd_tcl: gdb })]).toEqual([false, false])
    },
  )

  test('rejects two ways to reach one board', () => {
    expect(isValid({ gdb: 'a:1', openocd: ['-f', 'x'] })).toBe(false)
    expect(isValid({ gdb: 'a:1', boards: { board_c2: { openocd_tcl: 'b:2' } } })).toBe(true)
    expect(isValid({ boards: { board_c2: { openocd_tcl: 'b:2', gdb: 'a:1' } } })).toBe(false)
  })

  test('accepts keys only for boards that can be read live', () => {
    expect([isValid({ boards: { board_a: { gdb: 'a:1' } } }), isValid({ boards: { board_c1: { gdb: 'a:1' } } })]).toEqual([false, true])
  })
})

describe('parseEndpoint', () => {
  test('removes the brackets of an IPv6 address', () => {
    expect([parseEndpoint('[::1]:6666'), parseEndpoint('a.b:1')]).toEqual([
      { host: '::1', port: 6666 },
      { host: 'a.b', port: 1 },
    ])
  })
})
