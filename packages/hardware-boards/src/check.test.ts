import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { checkBoards } from './check.ts'
import { peripheralsSection } from './config.ts'
import { Registry } from './registry/registry.ts'
import { fakeMachine, type Plugged } from './testing/fake-machine.ts'

const never = new AbortController().signal
const findings = (plugged: readonly Plugged[], given: object = {}) => {
  const config = v.parse(peripheralsSection.schema, given)
  return checkBoards(new Registry(testHost(), config, fakeMachine(...plugged).machine), config.boards, never)
}

describe('checkBoards', () => {
  test('reports serialport and the USB devices when no board is connected', async () => {
    expect(await findings([{ path: '/dev/ttyUSB0', usb: '12d1:1001' }])).toEqual([
      { status: 'ok', detail: 'serialport works here' },
      { status: 'ok', detail: 'No board is connected; USB shows 12d1:1001 Thing' },
    ])
  })

  test('warns of an entry whose path cannot be used', async () => {
    const boards = [{ board: 'nucleo-f401re', path: '/dev/serial/usb-board' }]
    expect(await findings([], { enabled: true, boards })).toContainEqual({
      status: 'warn',
      detail: expect.stringContaining('"/dev/serial/usb-board" is not a serial port'),
      fix: 'Correct it in [[peripherals.boards]]',
    })
  })

  test('reports each board with its problem and the cure', async () => {
    const boards = [
      { board: 'board_c1', transport: 'sim' },
      { board: 'board_b', path: '/dev/ttyACM77' },
      { board: 'board_b_q', transport: 'bridge', path: '127.0.0.1:1' },
    ]
    const [, ...found] = await findings([{ path: '/dev/ttyACM78', usb: '2e8a:0005', serialNumber: '1' }], { enabled: true, boards })
    expect(found).toEqual([
      expect.objectContaining({ status: 'fail', detail: expect.stringContaining('There is no /dev/ttyACM78') }),
      expect.objectContaining({
        status: 'fail',
        detail: expect.stringContaining('cannot be reached'),
        fix: expect.stringContaining('path'),
      }),
      { status: 'ok', detail: 'board_c0 is available (sim)' },
      { status: 'warn', detail: 'board_b0 is not connected', fix: 'Plug it in' },
    ])
  })
})
