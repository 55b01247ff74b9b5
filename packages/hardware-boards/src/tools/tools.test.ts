import { createDeviceGuard } from '@sluice/hardware'
import { AppError, type ChipProbe, type ClientId, type DeviceRecord, type SharedGpio, type Tool } from '@sluice/sdk'
import { type TestHostOverrides, testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { afterEach, describe, expect, test } from 'vitest'
import { peripheralsSection } from '../config.ts'
import { withNativeGuard } from '../index.ts'
import { Registry } from '../registry/registry.ts'
import type { FakeBoardOptions } from '../testing/fake-board.ts'
import { fakeMachine, type Plugged } from '../testing/fake-machine.ts'
import { boardTools } from './board-tools.ts'
import { gpioTools } from './gpio.ts'

const open: Registry[] = []
afterEach(async () => {
  for (const registry of open.splice(0)) await registry.close()
})

const B: Plugged = { path: '/dev/ttyACM1', usb: '2341:0043', serialNumber: '757', location: '1-2' }
const code = (expected: string) => expect.objectContaining({ code: expected })

function toolsOn(plugged: readonly Plugged[], config: object = {}, services: TestHostOverrides['services'] = {}) {
  const records: DeviceRecord[] = []
  const host = testHost({ services: { audit: async (record) => void records.push(record), ...services } })
  const parsed = v.parse(peripheralsSection.schema, config)
  const fake = fakeMachine(...plugged)
  const registry = new Registry(host, parsed, fake.machine)
  open.push(registry)
  const guard = withNativeGuard(host, registry, createDeviceGuard(host, parsed))
  const tools = [...gpioTools(registry, guard), ...boardTools(host, parsed, registry, guard)]
  const named = (name: string): Tool => {
    const tool = tools.find((candidate) => candidate.name === name)
    if (!tool) throw new Error(`The feature has no tool ${name}`)
    return tool
  }
  const call = async (name: string, input: object, client = 'ada') => {
    const tool = named(name)
    return tool.run(v.parse(tool.input, input), { ...toolContext(), client: client as ClientId })
  }
  return { call, named, fake, records, host, registry }
}

describe('gpio', () => {
  test('writes and reads a pin, and records the write first', async () => {
    const { call, records, fake } = toolsOn([B])
    await expect(call('gpio_write', { pin: 13, value: 1 })).resolves.toBe('GPIO 13 set HIGH on board_b0')
    await expect(call('gpio_read', { device: 'board_b0', pin: 13 })).resolves.toBe('GPIO 13 is HIGH (1) on board_b0')
    expect(records).toEqual([
      { by: 'turn:turn', detail: expect.objectContaining({ device: 'board_b0', tool: 'gpio_write', pin: 13, value: 1 }) },
    ])
    expect(fake.board(B.path).pins.get(13)).toBe(1)
  })

  test('lists the USB devices when no board is connected', async () => {
    const { call } = toolsOn([{ path: '/dev/ttyUSB0', usb: '12d1:1001', location: '1-1' }])
    await expect(call('gpio_read', { pin: 1 })).rejects.toThrow('No device was found. USB shows no known board, only 12d1:1001')
  })

  test('refuses before a person is asked when no board is connected', async () => {
    const { named } = toolsOn([])
    const { precheck } = named('gpio_write')
    await expect(precheck?.({ pin: 1, value: 1 }, toolContext())).rejects.toThrow('No device was found')
  })

  test('refuses a missing pin without sending or recording anything', async () => {
    const { call, fake, records } = toolsOn([B])
    await expect(call('gpio_write', { pin: 7, value: 1 })).rejects.toThrow('board_b0 has no GPIO pin 7; it has 2-5, 12-13')
    expect(fake.board(B.path).requests).toEqual([])
    expect(records).toEqual([])
  })

  test('leaves the refusal to a board that does not list its pins', async () => {
    const { call, fake } = toolsOn([{ ...B, options: { capabilities: {} } }])
    await expect(call('gpio_read', { pin: 7 })).resolves.toContain('LOW')
    fake.board(B.path).next('refuse')
    await expect(call('gpio_read', { pin: 7 })).rejects.toThrow('board_b0 refuses: Invalid pin')
  })

  test('reports an answer that is not a level as an error', async () => {
    const { call, fake } = toolsOn([B])
    await call('gpio_read', { pin: 2 })
    fake.board(B.path).next({ answer: 'maybe' })
    await expect(call('gpio_read', { pin: 2 })).rejects.toThrow('neither 0 nor 1')
  })

  test.each([{ value: 2 }, { value: '1' }, { value: true }, { pin: -1 }, { pin: 1.5 }, { pin: '1' }, { pin: 1e9 }, { device: '../x' }])(
    'refuses the input %j',
    (wrong) => {
      const { named } = toolsOn([B])
      expect(v.safeParse(named('gpio_write').input, { pin: 2, value: 1, ...wrong }).success).toBe(false)
    },
  )

  test('needs approval to write, but not to read', () => {
    const { named } = toolsOn([])
    expect(named('gpio_write').risk).toBe('execute')
    expect(named('gpio_read').risk).toBe('read')
  })
})

describe('clients', () => {
  const gated = () => {
    const waiting: (() => void)[] = []
    const options: FakeBoardOptions = { delay: () => new Promise((resolve) => waiting.push(resolve)) }
    return { options, release: () => waiting.splice(0).map((resolve) => resolve()) }
  }
  const settle = async (): Promise<void> => {
    for (let tick = 0; tick < 20; tick++) await new Promise((resolve) => setImmediate(resolve))
  }

  test('never share a board: the second is refused while the first holds it', async () => {
    const { options, release } = gated()
    const { call, fake, host } = toolsOn([{ ...B, options }])
    const first = call('gpio_read', { pin: 2 }, 'ada')
    await settle()
    await expect(call('gpio_read', { pin: 3 }, 'bob')).rejects.toEqual(code('conflict'))
    release()
    await first
    await expect(call('gpio_read', { pin: 3 }, 'bob')).rejects.toEqual(code('conflict'))
    expect(fake.board(B.path).requests.map(({ args }) => args.pin)).toEqual([2])
    await host.advance(30_000)
    const second = call('gpio_read', { pin: 3 }, 'bob')
    await settle()
    release()
    await second
    expect(fake.board(B.path).requests.map(({ args }) => args.pin)).toEqual([3])
  })

  test('have their calls run one after the other', async () => {
    const { options, release } = gated()
    const { call, fake } = toolsOn([{ ...B, options }])
    const both = Promise.all([call('gpio_read', { pin: 2 }), call('gpio_read', { pin: 3 })])
    await settle()
    expect(fake.board(B.path).requests).toHaveLength(1)
    release()
    await settle()
    release()
    await both
    expect(fake.board(B.path).requests.map(({ args }) => args.pin)).toEqual([2, 3])
  })

  test('cannot write a pin that another client has written', async () => {
    const { call, host } = toolsOn([B])
    await call('gpio_write', { pin: 13, value: 1 }, 'ada')
    await host.advance(60_000)
    await expect(call('gpio_write', { pin: 13, value: 0 }, 'bob')).rejects.toThrow('Pin 13 of board_b0 is in use')
    await expect(call('gpio_write', { pin: 12, value: 0 }, 'bob')).resolves.toContain('LOW')
  })
})

describe('the board descriptions', () => {
  const config = { enabled: true, boards: [{ board: 'board_c1', transport: 'sim' }] }
  const probe = (info: ChipProbe['info']) => ({ chipProbe: { info } })

  test('are available only when boards are configured and enabled', () => {
    const isThere = (given: object) => toolsOn([], given).named('hardware_board_info').available?.()
    expect([isThere(config), isThere({ ...config, enabled: false }), isThere({ enabled: true })]).toEqual([true, false, false])
  })

  test('come from the data sheet without a probe', async () => {
    const { call } = toolsOn([], config)
    const info = await call('hardware_board_info', {})
    expect(info).toContain('Board: board_c1 (from the data sheet)')
    expect(info).toContain('Chip: STM32F401RET6')
    expect(await call('hardware_memory_map', { board: 'board_b' })).toBe(
      'board_b (from the data sheet):\nFlash: 0x00000000 - 0x00007FFF (32 KiB)\nSRAM: 0x00000100 - 0x000008FF (2 KiB)\nEEPROM: 0x00000000 - 0x000003FF (1 KiB)',
    )
  })

  test('are live with a probe', async () => {
    const live = { chip: 'STM32F401RE', architecture: 'Cortex-M4 r0p1', memory: [{ name: 'RAM', start: 0x20000000, length: 98_304 }] }
    const { call } = toolsOn(
      [],
      config,
      probe(async () => live),
    )
    expect(await call('hardware_memory_map', {})).toBe('board_c1 (live):\nRAM: 0x20000000 - 0x20017FFF (96 KiB)')
    expect(await call('hardware_memory_map', { board: 'board_b' })).toContain('from the data sheet')
  })

  test('come from the data sheet, with a note, when the probe fails', async () => {
    const { call } = toolsOn(
      [],
      config,
      probe(async () => Promise.reject(new Error('secret detail'))),
    )
    expect(await call('hardware_memory_map', {})).toContain('board_c1 (from the data sheet; the live reading failed: the probe failed):')
  })

  test('list the known boards for an unknown one', async () => {
    const { call } = toolsOn([], config)
    await expect(call('hardware_board_info', { board: 'toaster' })).rejects.toThrow('the known boards are board_a, board_b')
  })

  test('take the alias of a device, as `board` or as `device`', async () => {
    const { call } = toolsOn([B], config)
    const described = await call('hardware_memory_map', { board: 'board_b0' })
    expect(described).toMatch(/^board_b \(/)
    expect(await call('hardware_memory_map', { device: 'board_b0' })).toBe(described)
    expect(await call('hardware_board_info', { device: 'board_c0' })).toContain('Board: board_c1')
    await expect(call('hardware_board_info', { device: 'board_a9' })).rejects.toThrow('There is no device "board_a9"')
  })

  test.each([
    ['hardware_memory_map', { boards: 'board_b' }],
    ['hardware_board_info', { board: 'board_b', device: 'board_b0' }],
    ['hardware_capabilities', { board: 'board_b' }],
  ])('%s refuses %j', (name, input) => {
    const { named } = toolsOn([B], config)
    expect(v.safeParse(named(name).input, input).success).toBe(false)
  })

  test('include the capabilities that the boards state', async () => {
    const { call } = toolsOn([B], config)
    expect(await call('hardware_capabilities', {})).toBe(
      'board_b0: GPIO 2-5, 12-13; LED on pin 13; firmware fake 1\nboard_c0: GPIO 0-29; LED on pin 13; firmware sluice-sim 1',
    )
  })
})

describe('transports', () => {
  test('sim: keeps levels, wires pin 3 to pin 2, and sends signals', async () => {
    const fired: unknown[] = []
    const sops = {
      matches: () => true,
      topics: () => ['board_a0/button'],
      onReload: () => () => undefined,
      fire: async (event: unknown) => {
        fired.push(event)
        return []
      },
    }
    const { call, registry } = toolsOn([], { enabled: true, boards: [{ board: 'board_a', transport: 'sim' }] }, { sops: sops as never })
    await call('gpio_write', { pin: 2, value: 1 })
    expect(await call('gpio_read', { pin: 3 })).toContain('HIGH')
    registry.listenTo(new Map([['board_a0', new Set(['pin_3'])]]))
    await expect(call('gpio_write', { pin: 3, value: 1 })).rejects.toThrow('board_a0 refuses: The pin is watched')
    await call('gpio_write', { pin: 2, value: 0 })
    expect(fired.splice(0)).toEqual([expect.objectContaining({ topic: 'board_a0/pin_3', payload: '0' })])
    await call('gpio_write', { pin: 12, value: 1 })
    expect(await call('gpio_read', { pin: 12 })).toContain('HIGH')
    expect(fired).toEqual([expect.objectContaining({ source: 'peripheral', topic: 'board_a0/button', payload: '1', by: 'board:board_a0' })])
  })

  test('native: reaches the pins of this machine, or says how to build support', async () => {
    const config = { enabled: true, boards: [{ board: 'sbc', transport: 'native' }] }
    await expect(toolsOn([], config).call('gpio_read', { pin: 4 })).rejects.toThrow('npm run build')
    const nativeGpio: SharedGpio = {
      isThere: true,
      read: async () => 1,
      write: async () => undefined,
      use: async ({ tool, pins = [] }, work) => {
        if (pins.includes(17)) throw new AppError('conflict', `${tool}: pin 17 is in use by another client`)
        return work()
      },
    }
    const { call, registry } = toolsOn([], config, { nativeGpio })
    expect(await call('gpio_read', { pin: 4 })).toBe('GPIO 4 is HIGH (1) on sbc0')
    expect(registry.all()).toMatchObject([{ connected: true }])
    await expect(call('gpio_write', { pin: 17, value: 1 })).rejects.toThrow('gpio_write: pin 17 is in use by another client')
  })
})
