import { type TestHost, type TestHostOverrides, testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { afterEach, describe, expect, test } from 'vitest'
import { peripheralsSection } from '../config.ts'
import { type FakeMachine, fakeMachine, type Plugged } from '../testing/fake-machine.ts'
import { createRegistry, DISCOVERY_MS_MAX, type Registry, START_AFTER_MS } from './registry.ts'

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
  const registry = createRegistry(on, v.parse(peripheralsSection.schema, config), fake.machine)
  open.push(registry)
  return { registry, host: on }
}

/** Lets what was set off in the background come to its end. */
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 30; turn++) await new Promise((resolve) => setImmediate(resolve))
}
const shown = (registry: Registry) => registry.all().map(({ alias, connected, path }) => `${alias} ${connected ? path : 'gone'}`)
const code = (expected: string) => expect.objectContaining({ code: expected })

test.each<[what: string, one: Plugged, other: Plugged]>([
  ['of another kind', A, B],
  ['of the same kind', B, { ...B, path: '/dev/ttyACM0', serialNumber: '758', location: '1-1' }],
  ['told by its place', { ...B, serialNumber: '' }, { ...B, serialNumber: '', location: '1-9' }],
])('a board that took another one’s port a moment ago is not taken for it: %s', async (_, one, other) => {
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
  test('§2.7 rule 4: three boards have their families’ aliases, and none of them was opened', async () => {
    const fake = fakeMachine(A, B, C)
    const { registry } = registryOf(fake)
    await registry.discover(never)
    expect(shown(registry)).toEqual(['board_a0 /dev/ttyACM0', 'board_b0 /dev/ttyACM1', 'board_c0 /dev/ttyACM2'])
    expect(fake.opened).toEqual([])
  })

  test('what is on USB and no board is shown, not written to, not named', async () => {
    const fake = fakeMachine({ path: '/dev/ttyUSB0', usb: '12d1:1001', serialNumber: 'x', location: '1-4' })
    const { registry } = registryOf(fake)
    expect(await registry.discover(never)).toEqual([])
    expect(fake.opened).toEqual([])
    expect(registry.seen()).toEqual([{ vendor: '12d1', product: '1001', name: 'Thing' }])
  })

  test('a port of no USB device is asked what it is, once while it is there', async () => {
    const fake = fakeMachine({ path: '/dev/ttyAMA0', options: { capabilities: { board: 'board_c1' } } })
    const { registry } = registryOf(fake)
    await registry.discover(never)
    await registry.discover(never)
    expect(shown(registry)).toEqual(['board_c0 /dev/ttyAMA0'])
    expect(fake.opened).toEqual(['/dev/ttyAMA0'])
  })

  test('ports that do not answer are asked side by side, and the look ends in time', async () => {
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

  test('a board on USB is known before a port that does not answer has been waited for', async () => {
    const fake = fakeMachine({ path: '/dev/ttyAMA0' }, B)
    fake.machine.open = () => new Promise(() => {})
    const { registry, host } = registryOf(fake)
    registry.start()
    await host.advance(START_AFTER_MS)
    await settle()
    expect(shown(registry)).toEqual(['board_b0 /dev/ttyACM1'])
  })

  test('a machine that cannot be looked at holds nobody up longer than stated', async () => {
    const fake = fakeMachine(B)
    fake.machine.look = () => new Promise(() => {})
    const { registry, host } = registryOf(fake)
    const found = registry.discover(never)
    await host.advance(DISCOVERY_MS_MAX)
    await expect(found).resolves.toEqual([])
  })

  test('a daemon whose first look failed looks again', async () => {
    const fake = fakeMachine(B)
    const { look } = fake.machine
    let busy = true
    fake.machine.look = () => (busy ? new Promise(() => {}) : look())
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
    expect(fake.looks()).toBe(1)
  })

  test('a look that fails is logged and finds nothing', async () => {
    const fake = fakeMachine(B)
    fake.machine.look = async () => {
      throw new Error('no sysfs')
    }
    const { registry, host } = registryOf(fake)
    await expect(registry.discover(never)).resolves.toEqual([])
    expect(host.logs.map(({ level }) => level)).toContain('warn')
  })

  test('with `discover` off only what is configured is there', async () => {
    const fake = fakeMachine(A, B)
    const { registry } = registryOf(fake, { discover: false, enabled: true, boards: [{ board: 'board_b', path: B.path }] })
    await registry.discover(never)
    expect(shown(registry)).toEqual(['board_b0 /dev/ttyACM1'])
  })

  test('a device with several ports is its first, and copies with one serial number are told by their place', async () => {
    const twin: Plugged = { ...B, path: '/dev/ttyACM5', location: '1-5' }
    const second: Plugged = { ...B, path: '/dev/ttyACM3' }
    const { registry } = registryOf(fakeMachine(B, second, twin))
    await registry.discover(never)
    expect(shown(registry)).toEqual(['board_b0 /dev/ttyACM1', 'board_b1 /dev/ttyACM5'])
  })
})

describe('aliases', () => {
  test('stay with the board when it is plugged in elsewhere, and across a restart in another order', async () => {
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

  test('of a board without a serial number belong to its place', async () => {
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

  test('are not written down again by each look', async () => {
    const host = testHost()
    let writes = 0
    const set = host.keyValue.set
    host.keyValue.set = (...args) => {
      writes++
      return set(...args)
    }
    const { registry } = registryOf(fakeMachine(A, B, C), {}, host)
    for (let look = 0; look < 5; look++) await registry.discover(never)
    expect(writes).toBe(3)
  })
})

describe('hot-plug', () => {
  test('a board that comes, goes and comes back elsewhere is the same one, without anybody asking', async () => {
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

  test('a line that was lost is opened anew by the next call', async () => {
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

  test('nobody looks after close', async () => {
    const fake = fakeMachine()
    const { registry } = registryOf(fake)
    registry.start()
    await settle()
    await registry.close()
    const before = fake.looks()
    fake.plug(B)
    await settle()
    expect(fake.looks()).toBe(before)
  })
})

describe('configured boards', () => {
  const boards = [{ board: 'board_b', path: B.path, baud: 9600 }]

  test('are there though nothing is plugged in, and are the same when it is', async () => {
    const fake = fakeMachine()
    const { registry } = registryOf(fake, { enabled: true, boards })
    await registry.discover(never)
    expect(shown(registry)).toEqual(['board_b0 gone'])
    fake.plug(B)
    await registry.discover(never)
    expect(registry.all()).toEqual([expect.objectContaining({ alias: 'board_b0', connected: true, baud: 9600 })])
  })

  test('are not there while they are not enabled', async () => {
    const { registry } = registryOf(fakeMachine(), { enabled: false, boards })
    await expect(registry.discover(never)).resolves.toEqual([])
  })

  test('are found again after a restart without them', async () => {
    const { registry, host } = registryOf(fakeMachine(B), { enabled: true, boards })
    await registry.discover(never)
    await registry.close()
    const { registry: again } = registryOf(fakeMachine(), { enabled: true, boards }, host)
    await again.discover(never)
    expect(shown(again)).toEqual(['board_b0 gone'])
  })

  test('behind a bridge of no particular maker are what the configuration says', async () => {
    const clone: Plugged = { path: '/dev/ttyUSB0', usb: '1a86:7523', location: '1-1' }
    const { registry } = registryOf(fakeMachine(clone), { enabled: true, boards: [{ board: 'board_b', path: clone.path }] })
    await registry.discover(never)
    expect(registry.all()).toEqual([
      expect.objectContaining({ alias: 'board_b0', connected: true, board: expect.objectContaining({ name: 'board_b' }) }),
    ])
  })

  test('of the same kind without a port are filled one after the other', async () => {
    const fake = fakeMachine(B)
    const { registry } = registryOf(fake, { enabled: true, boards: [{ board: 'board_b' }, { board: 'board_b' }] })
    await registry.discover(never)
    expect(shown(registry)).toHaveLength(2)
    expect(registry.all().map(({ connected }) => connected)).toEqual([true, false])
  })

  test('without a port are the same when they are unplugged, and after a restart without them', async () => {
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

  test('of each transport have their names', async () => {
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
    const told = host.logs.filter(({ message }) => message === 'a board is connected')
    expect(told.map(({ fields }) => fields?.device)).toEqual(['board_c0', 'board_b0'])
  })
})

describe('pick', () => {
  test('takes the only one, and names the choices otherwise', async () => {
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

  test('with nothing connected says so and what USB shows', async () => {
    const { registry } = registryOf(fakeMachine({ path: '/dev/ttyUSB0', usb: '12d1:1001' }))
    await registry.discover(never)
    expect(() => registry.pick(undefined)).toThrow('No device was found. USB shows, none of them a known board: 12d1:1001 Thing')
    const { registry: empty } = registryOf(fakeMachine())
    await empty.discover(never)
    expect(() => empty.pick(undefined)).toThrow('USB shows nothing')
  })
})

describe('withPort and comeBack', () => {
  test('the port is alone with its work, and the protocol begins anew after', async () => {
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

  test('a device that is not connected has no port', async () => {
    const fake = fakeMachine(B)
    const { registry } = registryOf(fake)
    await registry.discover(never)
    fake.unplug(B.path)
    await registry.discover(never)
    await expect(registry.withPort('board_b0', never, async () => 1)).rejects.toEqual(code('unavailable'))
  })

  test('a board comes back under its name though its firmware gives it another serial number', async () => {
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

  test('one that does not come back is an error after the time given', async () => {
    const fake = fakeMachine(A)
    const { registry, host } = registryOf(fake)
    await registry.discover(never)
    fake.unplug(A.path)
    const back = expect(registry.comeBack('board_a0', 3000, never)).rejects.toEqual(code('upstream_timeout'))
    await host.advance(4000)
    await back
  })
})
