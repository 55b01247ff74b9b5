/** The firmware for MicroPython boards, run by MicroPython itself with simulated pins. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { capabilitiesOf } from './protocol/answers.ts'
import { micropython } from './repl/testing/micropython.ts'

const FIRMWARE = join(import.meta.dirname, '../../../firmware/micropython/main.py')

/** A module `machine` with pins whose levels the test sets; pin 3 is wired to pin 2. */
const MACHINE = `
class Pin:
    IN, OUT, PULL_UP, PULL_DOWN = 0, 1, 2, 3
    levels = {}
    made = []
    def __init__(self, number, mode, pull=None, value=None):
        if pull is not None and number >= 34:
            raise ValueError('pins 34~39 have no pull-up')
        Pin.made.append((number, mode, pull))
        self.number = number
        if value is not None:
            Pin.levels[2 if number == 3 else number] = value
    def value(self):
        return Pin.levels.get(2 if self.number == 3 else self.number, 0)
`

const python = await micropython()
const title = python ? 'the firmware for MicroPython' : 'the firmware for MicroPython (skipped: the WebAssembly package is not installed)'

describe.skipIf(!python)(title, () => {
  const execute = (code: string): string => {
    const { stdout = '', stderr = '' } = python?.execute(code) ?? {}
    if (stderr !== '') throw new Error(stderr)
    return stdout
  }
  const write = (name: string, text: string): void => {
    execute(`f = open('${name}', 'w')`)
    for (let at = 0; at < text.length; at += 2000) execute(`f.write(${JSON.stringify(text.slice(at, at + 2000))})`)
    execute('f.close()')
  }
  const start = (platform: 'rp2' | 'esp32', button = 'None') => {
    write('machine.py', MACHINE)
    write('firmware.py', readFileSync(FIRMWARE, 'utf8'))
    execute("import sys\nfor n in ('machine', 'firmware'):\n    sys.modules.pop(n, None)")
    execute(`import firmware, machine\nsaid = []\nfw = firmware.Firmware(firmware.BOARDS['${platform}'], said.append, ${button})`)
  }
  const said = (): unknown[] => {
    const lines = execute('for line in said:\n    print(line)\nsaid.clear()')
    return lines.trim() === ''
      ? []
      : lines
          .trim()
          .split(/\r?\n/)
          .map((line) => JSON.parse(line) as unknown)
  }
  const feed = (text: string): unknown[] => {
    execute(`fw.feed(${JSON.stringify(text)}.encode())`)
    return said()
  }
  const ask = (cmd: string, args: object = {}): unknown => feed(`${JSON.stringify({ id: '7', cmd, args })}\n`)[0]

  test('answers ping and capabilities for each platform', () => {
    for (const [platform, board, led] of [
      ['rp2', 'board_a', 25],
      ['esp32', 'board_d', 2],
    ] as const) {
      start(platform)
      const ping = ask('ping') as { id: string; result: string }
      expect(ping.id).toBe('7')
      expect(JSON.parse(ping.result)).toEqual({ firmware: 'sluice', version: 1, board })
      const { gpio, ...rest } = capabilitiesOf(board, (ask('capabilities') as { result: string }).result)
      expect(rest).toEqual({ led, board, firmware: 'sluice 1' })
      expect(gpio).toContain(led)
    }
  })

  test('lists no LED pin on a board whose radio uses it', () => {
    start('rp2')
    const ofBoard = (machine: string) =>
      JSON.parse(execute(`import json\nprint(json.dumps(firmware.about_of('rp2', '${machine}')))`)) as { gpio: number[]; led_pin: unknown }
    const radio = ofBoard('Raspberry Pi Pico W with RP2040')
    expect(radio).toMatchObject({ board: 'board_a', led_pin: null })
    expect(radio.gpio).not.toContain(25)
    expect(radio.gpio).toContain(22)
    expect(ofBoard('Raspberry Pi Pico with RP2040')).toMatchObject({ led_pin: 25, gpio: [...radio.gpio.slice(0, 23), 25, 26, 27, 28] })
    expect(execute("print(firmware.about_of('linux', ''))").trim()).toBe('None')
  })

  test('writes a pin, and reads it at the pin wired to it', () => {
    start('rp2')
    expect(ask('gpio_read', { pin: 3 })).toEqual({ id: '7', ok: true, result: '0' })
    expect(ask('gpio_write', { pin: 2, value: 1 })).toEqual({ id: '7', ok: true, result: 'done' })
    expect(ask('gpio_read', { pin: 3 })).toMatchObject({ result: '1' })
  })

  test.each([
    ['gpio_read', { pin: 24 }, 'Invalid pin'],
    ['gpio_read', { pin: '2' }, 'Invalid pin'],
    ['gpio_read', { pin: true }, 'Invalid pin'],
    ['gpio_read', {}, 'Invalid pin'],
    ['gpio_write', { pin: 2 }, 'Invalid value'],
    ['gpio_write', { pin: 2, value: 2 }, 'Invalid value'],
    ['gpio_write', { pin: 2, value: true }, 'Invalid value'],
    ['watch', { pin: 2, pull: 'x' }, 'Invalid pull'],
    ['watch', { pin: 2, pull: ['up'] }, 'Invalid pull'],
    ['reboot', {}, 'Unknown command'],
  ])('refuses %s %j without touching a pin', (command, args, why) => {
    start('rp2')
    expect(ask(command, args)).toEqual({ id: '7', ok: false, error: expect.stringContaining(why) })
    expect(execute('print(machine.Pin.made)').trim()).toBe('[]')
  })

  test('refuses to write an input-only pin', () => {
    start('esp32')
    expect(ask('gpio_write', { pin: 34, value: 1 })).toMatchObject({ ok: false, error: 'Pin 34 is input only' })
    expect(ask('gpio_read', { pin: 34 })).toMatchObject({ ok: true })
  })

  test('answers with the error when the chip refuses', () => {
    start('esp32')
    expect(ask('watch', { pin: 34, pull: 'up' })).toEqual({ id: '7', ok: false, error: 'pins 34~39 have no pull-up' })
    expect(ask('gpio_read', { pin: 34 })).toMatchObject({ ok: true })
  })

  test('reports each change of a watched pin once, and refuses to write it', () => {
    start('rp2')
    expect(ask('watch', { pin: 12, pull: 'up' })).toMatchObject({ ok: true })
    execute('fw.poll()\nmachine.Pin.levels[12] = 1\nfw.poll()\nfw.poll()\nmachine.Pin.levels[12] = 0\nfw.poll()')
    expect(said()).toEqual([
      { event: 'pin_12', value: 1 },
      { event: 'pin_12', value: 0 },
    ])
    expect(ask('gpio_write', { pin: 12, value: 1 })).toMatchObject({ ok: false })
    ask('unwatch', { pin: 12 })
    execute('machine.Pin.levels[12] = 1\nfw.poll()')
    expect(said()).toEqual([])
  })

  test('reports its button from the first change on, without a watch', () => {
    start('rp2', 'lambda: machine.Pin.levels.get(99, 0)')
    execute('fw.poll()\nfw.poll()\nmachine.Pin.levels[99] = 1\nfw.poll()\nfw.poll()')
    expect(said()).toEqual([{ event: 'button', value: 1 }])
  })

  test('watches at most 16 pins', () => {
    start('rp2')
    const answers = Array.from({ length: 17 }, (_, pin) => ask('watch', { pin }))
    expect(answers.at(15)).toMatchObject({ ok: true })
    expect(answers.at(16)).toMatchObject({ ok: false })
  })

  test.each([
    '',
    'hello',
    '{',
    '[]',
    '1',
    '{"cmd":"ping"}',
    '{"id":1,"cmd":"ping"}',
    `{"id":"1","cmd":"ping","x":"${'y'.repeat(300)}"}`,
    'é\u0000',
  ])('does not answer %j, which is not a request', (line) => {
    start('rp2')
    expect(feed(`${line}\n`)).toEqual([])
    expect(ask('ping')).toMatchObject({ ok: true })
  })

  test('answers a request that arrives in pieces, and two at once', () => {
    start('rp2')
    expect(feed('{"id":"1","cmd"')).toEqual([])
    expect(feed(':"gpio_read","args":{"pin":2}}\r\n{"id":"2","cmd":"gpio_read","args":{"pin":2}}\n')).toMatchObject([
      { id: '1' },
      { id: '2' },
    ])
  })
})
