import { type TestHost, type TestHostOverrides, testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { afterEach, describe, expect, test } from 'vitest'
import { peripheralsSection } from '../config.ts'
import { type FakeMachine, fakeMachine, type Plugged } from '../testing/fake-machine.ts'
import { DISCOVERY_MS_MAX, Registry, START_AFTER_MS } from './registry.ts'

const never = new AbortController().signal
const A: Plugged = { path: '/dev/ttyACM0', usb: '2e8a:0005', serialNumber: 'e66', location: '1-1' }
const B: Plugged = { path: '/dev/ttyACM1', usb: '2341:0043', serialNumber: '757', location: '1-2' }
const C: Plugged = { path: '/dev/ttyACM2', usb: '0483:374b', serialNumber: '066', location: '1-3' }

const open: Registry[] = []
afterEach(async () => {
  for (const registry of open.splice(0)) await registry.close()
})

function registryOf(fake: FakeMachine, config: object = {}, host: TestHost | TestHostOverrides = {}) {
  const on = 'logs' in host ? (host as TestHost) : testHost(host)
  const registry = new Registry(on, v.parse(peripheralsSection.schema, config), fake.machine)
  open.push(registry)
  return { registry, host: on }
}

/** Waits until background work has ended. */
const settle = async (): Promise<void> => {
  for (let tick = 0; tick < 30; tick++) await new Promise((resolve) => setImmediate(resolve))
}
const shown = (registry: Registry) => registry.all().map(({ alias, connected, path }) => `${alias} ${connected ? path : 'gone'}`)
const code = (expected: string) => expect.objectContaining({ code: expected })

test.each<[what: string, one: Plugged, other: Plugged]>([
  ['of another kind', A, B],
  ['of the same kind', B, { ...B, path: '/dev/ttyACM0', serialNumber: '758', location: '1-1' }],
  ['identified by its place', { ...B, serialNumber: '' }, { ...B, serialNumber: '', location: '1-9' }],
])('a line refuses a board that took over the port: %s', async (_, one, other) => {
  const plain = ({ serialNumber, ...rest }: Plugged): Plugged => (serialNumber ? { ...rest, serialNumber } : rest)
  const fake = fakeMachine(plain(one))
  const { registry } = registryOf(fake)
  const [device] = await registry.discover(never)
  const line = registry.line(device?.alias ?? '')
  await line.read(4, never)
  fake.unplug(one.path)
  fake.plug(plain({ ...other, path: one.path }))
  await expect(line.write(4, 1, never)).rejects.toEqual(code('unavailable'))
  await expect(registry.withPort(device?.alias ?? '', never, async () => undefined)).rejects.toEqual(code('unavailable'))
  expect(fake.opened).toEqual([one.path])
})

describe('discovery', () => {
  test('names three boards by their families without opening them', async () => {
    const fake = fakeMachine(A, B, C)
    const { registry } = registryOf(fake)
    await registry.discover(never)
    expect(shown(registry)).toEqual(['board_a0 /dev/ttyACM0', 'board_b0 /dev/ttyACM1', 'board_c0 /dev/ttyACM2'])
    expect(fake.opened).toEqual([])
  })

  test('shows a USB device that is not a board, and neither opens nor names it', async () => {
    const fake = fakeMachine({ path: '/dev/ttyUSB0', usb: '12d1:1001', serialNumber: 'x', location: '1-4' })
    const { registry } = registryOf(fake)
    expect(await registry.discover(never)).toEqual([])
    expect(fake.opened).toEqual([])
    expect(registry.seen()).toEqual([{ vendor: '12d1', product: '1001', name: 'Thing' }])
  })

  test('asks a port without a USB device for its firmware once', async () => {
    const fake = fakeMachine({ path: '/dev/ttyAMA0', options: { capabilities: { board: 'board_c1' } } })
    const { registry } = registryOf(fake)
    await registry.discover(never)
    await registry.discover(never)
    expect(shown(registry)).toEqual(['board_c0 /dev/ttyAMA0'])
    expect(fake.opened).toEqual(['/dev/ttyAMA0'])
  })

  test('asks silent ports in parallel and ends in time', async () => {
    const silent = (path: string): Plugged => ({ path, options: { delay: () => new Promise(() => {}) } })
    const fake = fakeMachine(silent('/dev/ttyAMA0'), silent('/dev/ttyAMA1'), silent('/dev/ttyAMA2'), B)
    const open = fake.machine.open
    fake.machine.open = async (...args) => {
      const port = await open(...args)
      fake.board(args[0]).always('silent')
      return port
    }
    const { registry, host } = registryOf(fake)
    const found = registry.discover(never)
    await settle()
    await host.advance(300)
    await settle()
    expect((await found).map(({ alias }) => alias)).toEqual(['board_b0'])
  })

  test('knows a USB board before a silent port has timed out', async () => {
    const fake = fakeMachine({ path: '/dev/ttyAMA0' }, B)
    fake.machine.open = () => new Promise(() => {})
    const { registry, host } = registryOf(fake)
    registry.start()
    await host.advance(START_AFTER_MS)
    await settle()
    expect(shown(registry)).toEqual(['board_b0 /dev/ttyACM1'])
  })

  test('ends in time when the scan hangs', async () => {
    const fake = fakeMachine(B)
    fake.machine.scan = () => new Promise(() => {})
    const { registry, host } = registryOf(fake)
    const found = registry.discover(never)
    await host.advance(DISCOVERY_MS_MAX)
    await expect(found).resolves.toEqual([])
  })

  test('scans again when the first scan failed', async () => {
    const fake = fakeMachine(B)
    const { scan } = fake.machine
    let busy = true
    fake.machine.scan = () => (busy ? new Promise(() => {}) : scan())
    const { registry, host } = registryOf(fake)
    registry.start()
    await host.advance(DISCOVERY_MS_MAX)
    await settle()
    busy = false
    await host.advance(5000)
    await settle()
    expect(shown(registry)).toEqual(['board_b0 /dev/ttyACM1'])
    await host.advance(600_000)
    await settle()
    expect(fake.scans()).toBe(1)
  })

  test('logs a failed scan and finds nothing', async () => {
    const fake = fakeMachine(B)
    fake.machine.scan = async () => {
      throw new Error('no sysfs')
    }
    const { registry, host } = registryOf(fake)
    await expect(registry.discover(never)).resolves.toEqual([])
    expect(host.logs.map(({ level }) => level)).toContain('warn')
  })

  test('shows only configured boards when discover is false', async () => {
    const fake = fakeMachine(A, B)
    const { registry } = registryOf(fake, { discover: false, enabled: true, boards: [{ board: 'board_b', path: B.path }] })
    await registry.discover(never)
    expect(shown(registry)).toEqual(['board_b0 /dev/ttyACM1'])
  })

  test('finds a board by its name below /dev/serial, also after it came back at another port', async () => {
    const fake = fakeMachine(B)
    const name = '/dev/serial/by-id/usb-Arduino-if00'
    fake.link(name, B.path)
    const { registry } = registryOf(fake, {
      enabled: true,
      discover: false,
      boards: [{ board: 'board_b', transport: 'serial', path: name, baud: 115_200 }],
    })
    await registry.discover(never)
    expect(shown(registry)).toEqual([`board_b0 ${B.path}`])
    fake.unplug(B.path)
    fake.plug({ ...B, path: '/dev/ttyACM7' })
    fake.link(name, '/dev/ttyACM7')
    await registry.discover(never)
    expect(shown(registry)).toEqual(['board_b0 /dev/ttyACM7'])
  })

  test('takes the first port of a device, and identifies copies by their place', async () => {
    const twin: Plugged = { ...B, path: '/dev/ttyACM5', location: '1-5' }
    const second: Plugged = { ...B, path: '/dev/ttyACM3' }
    const { registry } = registryOf(fakeMachine(B, second, twin))
    await registry.discover(never)
    expect(shown(registry)).toEqual(['board_b0 /dev/ttyACM1', 'board_b1 /dev/ttyACM5'])
  })
})

describe('aliases', () => {
  test('stay with the board at another port and after a restart', async () => {
    const fake = fakeMachine(B)
    const { registry, host } = registryOf(fake)
    const other: Plugged = { ...B, serialNumber: '999', path: '/dev/ttyACM9', location: '1-9' }
    await registry.discover(never)
    fake.plug(other)
    await registry.discover(never)
    expect(shown(registry)).toEqual(['board_b0 /dev/ttyACM1', 'board_b1 /dev/ttyACM9'])
    await registry.close()

    const later = fakeMachine({ ...other, path: '/dev/ttyACM0', location: '2-1' }, { ...B, path: '/dev/ttyACM1', location: '2-2' })
    const { registry: again } = registryOf(later, {}, host)
    await again.discover(never)
    expect(shown(again)).toEqual(['board_b0 /dev/ttyACM1', 'board_b1 /dev/ttyACM0'])
  })

  test('belong to the place of a board without a serial number', async () => {
    const { serialNumber: _, ...nameless } = B
    const fake = fakeMachine(nameless)
    const { registry } = registryOf(fake)
    await registry.discover(never)
    fake.unplug(B.path)
    fake.plug({ ...nameless, path: '/dev/ttyACM7' })
    await registry.discover(never)
    expect(shown(registry)).toEqual(['board_b0 /dev/ttyACM7'])
    fake.plug({ ...nameless, path: '/dev/ttyACM8', location: '9-9' })
    await registry.discover(never)
    expect(shown(registry)).toEqual(['board_b0 /dev/ttyACM7', 'board_b1 /dev/ttyACM8'])
  })

  test('are not stored again by each scan', async () => {
    const host = testHost()
    let writes = 0
    const { set, swap } = host.keyValue
    host.keyValue.set = (...args) => {
      writes++
      return set(...args)
    }
    host.keyValue.swap = (...args) => {
      writes++
      return swap(...args)
    }
    const { registry } = registryOf(fakeMachine(A, B, C), {}, host)
    for (let scan = 0; scan < 5; scan++) await registry.discover(never)
    expect(writes).toBe(3)
  })
})

describe('hot-plug', () => {
  test('recognises a board that reconnects at another port', async () => {
    const fake = fakeMachine()
    const { registry, host } = registryOf(fake)
    registry.start()
    await host.advance(START_AFTER_MS)
    await settle()
    expect(shown(registry)).toEqual([])
    fake.plug(B)
    await settle()
    expect(shown(registry)).toEqual(['board_b0 /dev/ttyACM1'])
    fake.unplug(B.path)
    await settle()
    expect(shown(registry)).toEqual(['board_b0 gone'])
    await expect(registry.line('board_b0').read(4, never)).rejects.toThrow('board_b0 is not connected')
    fake.plug({ ...B, path: '/dev/ttyACM4' })
    await settle()
    expect(shown(registry)).toEqual(['board_b0 /dev/ttyACM4'])
    await expect(registry.line('board_b0').read(4, never)).resolves.toBe(0)
  })

  test('reopens a lost line with the next call', async () => {
    const fake = fakeMachine(B)
    const { registry } = registryOf(fake)
    await registry.discover(never)
    const line = registry.line('board_b0')
    await line.read(4, never)
    fake.board(B.path).next('unplug')
    await expect(line.read(4, never)).rejects.toEqual(code('unavailable'))
    await expect(line.read(4, never)).resolves.toBe(0)
    expect(fake.opened).toEqual([B.path, B.path])
  })

  test('does not scan after close', async () => {
    const fake = fakeMachine()
    const { registry } = registryOf(fake)
    registry.start()
    await settle()
    await registry.close()
    const before = fake.scans()
    fake.plug(B)
    await settle()
    expect(fake.scans()).toBe(before)
  })
})

describe('configured boards', () => {
  const boards = [{ board: 'board_b', path: B.path, baud: 9600 }]

  test('are listed while disconnected, and stay the same when connected', async () => {
    const fake = fakeMachine()
    const { registry } = registryOf(fake, { enabled: true, boards })
    await registry.discover(never)
    expect(shown(registry)).toEqual(['board_b0 gone'])
    fake.plug(B)
    await registry.discover(never)
    expect(registry.all()).toEqual([expect.objectContaining({ alias: 'board_b0', connected: true, baud: 9600 })])
  })

  test('are not listed unless enabled', async () => {
    const { registry } = registryOf(fakeMachine(), { enabled: false, boards })
    await expect(registry.discover(never)).resolves.toEqual([])
  })

  test('keep their alias after a restart without them', async () => {
    const { registry, host } = registryOf(fakeMachine(B), { enabled: true, boards })
    await registry.discover(never)
    await registry.close()
    const { registry: again } = registryOf(fakeMachine(), { enabled: true, boards }, host)
    await again.discover(never)
    expect(shown(again)).toEqual(['board_b0 gone'])
  })

  test('behind a generic bridge chip are the boards that the configuration names', async () => {
    const clone: Plugged = { path: '/dev/ttyUSB0', usb: '1a86:7523', location: '1-1' }
    const { registry } = registryOf(fakeMachine(clone), { enabled: true, boards: [{ board: 'board_b', path: clone.path }] })
    await registry.discover(never)
    expect(registry.all()).toEqual([
      expect.objectContaining({ alias: 'board_b0', connected: true, board: expect.objectContaining({ name: 'board_b' }) }),
    ])
  })

  test('of the same kind without a port are filled in order', async () => {
    const fake = fakeMachine(B)
    const { registry } = registryOf(fake, { enabled: true, boards: [{ board: 'board_b' }, { board: 'board_b' }] })
    await registry.discover(never)
    expect(shown(registry)).toHaveLength(2)
    expect(registry.all().map(({ connected }) => connected)).toEqual([true, false])
  })

  test('without a port keep their alias when unplugged and after a restart', async () => {
    const fake = fakeMachine(B)
    const config = { enabled: true, boards: [{ board: 'board_b' }] }
    const { registry, host } = registryOf(fake, config)
    await registry.discover(never)
    fake.unplug(B.path)
    await registry.discover(never)
    expect(shown(registry)).toEqual(['board_b0 gone'])
    await registry.close()
    const { registry: again } = registryOf(fake, config, host)
    await again.discover(never)
    expect(shown(again)).toEqual(['board_b0 gone'])
    fake.plug(B)
    await again.discover(never)
    expect(shown(again)).toEqual(['board_b0 /dev/ttyACM1'])
  })

  test('of each transport get an alias', async () => {
    const config = {
      enabled: true,
      boards: [
        { board: 'board_c1', transport: 'sim' },
        { board: 'board_b_q', transport: 'bridge', path: '127.0.0.1:9' },
        { board: 'sbc', transport: 'native' },
      ],
    }
    const { registry, host } = registryOf(fakeMachine(), config)
    await registry.discover(never)
    expect(registry.all().map(({ alias, transport, connected }) => [alias, transport, connected])).toEqual([
      ['board_b0', 'bridge', true],
      ['board_c0', 'sim', true],
      ['sbc0', 'native', false],
    ])
    const logged = host.logs.filter(({ message }) => message === 'board connected')
    expect(logged.map(({ fields }) => fields?.device)).toEqual(['board_c0', 'board_b0'])
  })
})

describe('pick', () => {
  test('returns the only device, and lists the choices otherwise', async () => {
    const fake = fakeMachine(B)
    const { registry } = registryOf(fake)
    await registry.discover(never)
    expect(registry.pick(undefined).alias).toBe('board_b0')
    fake.plug(C)
    await registry.discover(never)
    expect(() => registry.pick(undefined)).toThrow('name one: board_b0, board_c0')
    expect(registry.pick(undefined, ({ board }) => board?.family === 'board_c').alias).toBe('board_c0')
    expect(() => registry.pick('board_x0')).toThrow(code('not_found'))
  })

  test('reports the USB devices when no board is connected', async () => {
    const { registry } = registryOf(fakeMachine({ path: '/dev/ttyUSB0', usb: '12d1:1001' }))
    await registry.discover(never)
    expect(() => registry.pick(undefined)).toThrow('No device was found. USB shows no known board, only 12d1:1001 Thing')
    const { registry: empty } = registryOf(fakeMachine())
    await empty.discover(never)
    expect(() => empty.pick(undefined)).toThrow('USB shows no devices')
  })
})

describe('withPort and comeBack', () => {
  test('give the port to one task, and restart the protocol afterwards', async () => {
    const fake = fakeMachine(B)
    const { registry } = registryOf(fake)
    await registry.discover(never)
    const line = registry.line('board_b0')
    await line.read(4, never)
    const order: string[] = []
    const working = registry.withPort('board_b0', never, async () => {
      order.push('begins')
      await settle()
      order.push('ends')
    })
    const reading = line.read(4, never).then(() => order.push('read'))
    await Promise.all([working, reading])
    expect(order).toEqual(['begins', 'ends', 'read'])
    expect(fake.opened).toHaveLength(3)
  })

  test('refuse a device that is not connected', async () => {
    const fake = fakeMachine(B)
    const { registry } = registryOf(fake)
    await registry.discover(never)
    fake.unplug(B.path)
    await registry.discover(never)
    await expect(registry.withPort('board_b0', never, async () => 1)).rejects.toEqual(code('unavailable'))
  })

  test('keep the alias of a board that reconnects with another serial number', async () => {
    const fake = fakeMachine(A)
    const { registry, host } = registryOf(fake)
    await registry.discover(never)
    fake.unplug(A.path)
    await registry.discover(never)
    const back = registry.comeBack('board_a0', 10_000, never)
    await host.advance(1000)
    fake.plug({ ...A, serialNumber: 'new', path: '/dev/ttyACM6' })
    await host.advance(1000)
    await expect(back).resolves.toEqual(expect.objectContaining({ alias: 'board_a0', path: '/dev/ttyACM6' }))
  })

  test('fail when the board does not reconnect in time', async () => {
    const fake = fakeMachine(A)
    const { registry, host } = registryOf(fake)
    await registry.discover(never)
    fake.unplug(A.path)
    const back = expect(registry.comeBack('board_a0', 3000, never)).rejects.toEqual(code('upstream_timeout'))
    await host.advance(4000)
    await back
  })
})
