import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { START_AFTER_MS } from './adapters.ts'
import { Ch341aChip } from './testing/ch341a-chip.ts'
import { hidPort, plug, usbPort } from './testing/fake-native.ts'
import { type HardwareKit, hardwareKit, type KitOptions, removeRoots, temporaryRoot } from './testing/hardware-kit.ts'
import { Mcp2221Chip } from './testing/mcp2221-chip.ts'

const kits: HardwareKit[] = []
const arrange = (options: KitOptions): HardwareKit => {
  const kit = hardwareKit({ config: {}, ...options })
  kits.push(kit)
  return kit
}
afterAll(removeRoots)
afterEach(async () => {
  for (const { parts, root } of kits.splice(0)) {
    await parts.close?.()
    rmSync(root, { recursive: true, force: true })
  }
})

const put = (file: string, text: string): void => writeFileSync(file, `${text}\n`)

/** Creates the files that the kernel shows for a device, and its device node. */
function plugIn(root: string, port: string, device: { vendor: string; product: string; address: number; serial?: string }): void {
  const folder = join(root, 'sys/bus/usb/devices', port)
  mkdirSync(folder, { recursive: true })
  put(join(folder, 'idVendor'), device.vendor)
  put(join(folder, 'idProduct'), device.product)
  put(join(folder, 'busnum'), '1')
  put(join(folder, 'devnum'), String(device.address))
  if (device.serial !== undefined) put(join(folder, 'serial'), device.serial)
  mkdirSync(join(root, 'dev/bus/usb/001'), { recursive: true })
  put(join(root, `dev/bus/usb/001/00${device.address}`), '')
}

function unplug(root: string, port: string, address: number): void {
  rmSync(join(root, 'sys/bus/usb/devices', port), { recursive: true })
  rmSync(join(root, `dev/bus/usb/001/00${address}`))
}

const ch341 = { vendor: '1a86', product: '5512' }
const openCh341 = () => {
  const opened: object[] = []
  const openUsb = async (device: object) => {
    opened.push(device)
    return usbPort(new Ch341aChip(), plug())
  }
  return { native: { openUsb }, opened }
}

describe('the connected adapters', () => {
  test('offer no tool before an adapter is found, and do not delay the start', async () => {
    const kit = arrange({ config: { adapter: { transport: 'sim' } } })
    expect(kit.available()).toBe(false)
    await kit.parts.register?.(AbortSignal.timeout(1000))
    await kit.host.advance(START_AFTER_MS)
    await expect.poll(() => kit.available()).toBe(true)
    expect(kit.host.refreshes).toEqual(['adapter0 is there (Simulated adapter)'])
  })

  test('fail a call when no adapter is connected', async () => {
    const { run, available } = arrange({})
    await expect(run('i2c_scan', {})).rejects.toMatchObject({ code: 'unavailable', message: 'No I2C/SPI adapter is connected' })
    expect(available()).toBe(false)
  })

  test('find a USB adapter by its ids and open it by its address', async () => {
    const root = temporaryRoot()
    plugIn(root, '1-2', { ...ch341, address: 7 })
    plugIn(root, '1-3', { vendor: '1a86', product: '7523', address: 8 })
    const { native, opened } = openCh341()
    const { run } = arrange({ root, native })
    expect(await run('i2c_scan', {})).toContain('0x48')
    expect(opened).toEqual([{ vendor: 0x1a86, product: 0x5512, bus: '1', address: 7 }])
  })

  test('find a HID adapter in the files of the kernel', async () => {
    const root = temporaryRoot()
    const folder = join(root, 'sys/class/hidraw/hidraw3/device')
    mkdirSync(folder, { recursive: true })
    put(join(folder, 'uevent'), 'DRIVER=hid-generic\nHID_ID=0003:000004D8:000000DD\nHID_PHYS=usb-1/input2\nHID_UNIQ=0001')
    const { run } = arrange({ root })
    await expect(run('i2c_scan', {})).rejects.toMatchObject({ message: 'this test has no such device' })
    await expect(run('spi_transfer', { bytes: [0] })).rejects.toMatchObject({ message: 'adapter0 (MCP2221) has no SPI' })
  })

  test('open an adapter again that was plugged in again under the same name', async () => {
    const root = temporaryRoot()
    const chip = new Mcp2221Chip()
    let device = plug()
    const kit = arrange({ root, native: { openHid: async () => hidPort(chip, device) } })
    const plugged = (instance: string) => {
      const folder = join(root, 'sys/devices', instance)
      mkdirSync(folder, { recursive: true })
      put(join(folder, 'uevent'), 'HID_ID=0003:000004D8:000000DD\nHID_UNIQ=0001')
      mkdirSync(join(root, 'sys/class/hidraw/hidraw3'), { recursive: true })
      rmSync(join(root, 'sys/class/hidraw/hidraw3/device'), { force: true })
      symlinkSync(folder, join(root, 'sys/class/hidraw/hidraw3/device'))
    }
    plugged('0003:04D8:00DD.0001')
    await kit.parts.register?.(AbortSignal.timeout(1000))
    expect(await kit.run('i2c_scan', {})).toContain('0x48')
    device.state = 'out'
    device = plug()
    plugged('0003:04D8:00DD.0002')
    const refreshes = async () => {
      await kit.host.advance(10_000)
      return kit.host.refreshes
    }
    await expect.poll(refreshes).toHaveLength(2)
    expect(await kit.run('i2c_scan', {})).toContain('0x48')
  })

  test('notice adapters that are plugged in and out', async () => {
    const root = temporaryRoot()
    mkdirSync(join(root, 'dev/bus/usb/001'), { recursive: true })
    const kit = arrange({ root, ...openCh341() })
    await kit.parts.register?.(AbortSignal.timeout(1000))
    /** Advances the clock. */
    const isAvailable = async () => {
      await kit.host.advance(500)
      return kit.available()
    }
    await expect.poll(isAvailable).toBe(false)
    plugIn(root, '1-2', { ...ch341, address: 7 })
    await expect.poll(isAvailable).toBe(true)
    unplug(root, '1-2', 7)
    await expect.poll(isAvailable).toBe(false)
    expect(kit.host.refreshes).toEqual(['adapter0 is there (CH341A)', 'adapter0 is gone'])
  })

  test('search every ten seconds on a system without USB notifications', async () => {
    let searches = 0
    const kit = arrange({
      platform: 'darwin',
      native: {
        listHid: async () => {
          searches++
          return []
        },
      },
    })
    await kit.parts.register?.(AbortSignal.timeout(1000))
    await kit.host.advance(START_AFTER_MS)
    await expect.poll(() => [searches, kit.host.clock.sleeping]).toEqual([1, 1])
    await kit.host.advance(9_999)
    expect(searches).toBe(1)
    await kit.host.advance(1)
    await expect.poll(() => searches).toBe(2)
  })

  test('keep the alias of an adapter across restarts', async () => {
    const root = temporaryRoot()
    const keyValue = memoryKeyValue()
    plugIn(root, '1-2', { ...ch341, address: 7, serial: 'first' })
    const before = arrange({ root, host: { keyValue }, ...openCh341() })
    expect(await before.run('i2c_scan', { device: 'adapter0' })).toContain('0x48')
    await before.parts.close?.()
    plugIn(root, '1-1', { ...ch341, address: 6, serial: 'second' })
    const { native, opened } = openCh341()
    const after = arrange({ root, host: { keyValue }, native })
    await after.run('i2c_scan', { device: 'adapter0' })
    await after.run('i2c_scan', { device: 'adapter1' })
    expect(opened).toMatchObject([{ address: 7 }, { address: 6 }])
    await expect(after.run('i2c_scan', {})).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('adapter0, adapter1'),
    })
    await expect(after.run('i2c_scan', { device: 'adapter7' })).rejects.toMatchObject({ code: 'not_found' })
  })

  test('use a bus of the kernel only when it is named', async () => {
    const opened: string[] = []
    const openI2c = async (path: string) => {
      opened.push(path)
      throw Object.assign(new Error('permission'), { code: 'EACCES' })
    }
    const { run } = arrange({ config: { adapter: { i2c: '/dev/i2c-7' } }, native: { openI2c } })
    await expect(run('i2c_read', { addr: 0x48 })).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/No permission for \/dev\/i2c-7: .*group `i2c`/),
    })
    expect(opened).toEqual(['/dev/i2c-7'])
  })

  test('leave the feature out when the transport is off', () => {
    expect(arrange({ config: { adapter: { transport: 'off' } } }).parts.disabledReason).toContain('[peripherals.adapter]')
  })

  test('log nothing when a search fails after the close', async () => {
    const failing = Promise.withResolvers<never>()
    let searches = 0
    const get = () => {
      searches++
      return failing.promise
    }
    const kit = arrange({ config: { adapter: { transport: 'sim' } }, host: { keyValue: { ...memoryKeyValue(), get } } })
    await kit.parts.register?.(AbortSignal.timeout(1000))
    await kit.host.advance(START_AFTER_MS)
    await expect.poll(() => searches).toBe(1)
    await kit.parts.close?.()
    failing.reject(new Error('The store is closed.'))
    await new Promise(setImmediate)
    expect(kit.host.logs).toEqual([])
  })
})
