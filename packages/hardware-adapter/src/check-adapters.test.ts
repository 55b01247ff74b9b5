import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '@sluice/sdk'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { hardwareKit, type KitOptions, removeRoots, temporaryRoot } from './testing/hardware-kit.ts'

const cleanUp: (() => unknown)[] = []
afterAll(removeRoots)
afterEach(async () => {
  for (const step of cleanUp.splice(0)) await step()
})

const check = async (options: KitOptions) => {
  const { parts, root } = hardwareKit(options)
  cleanUp.push(
    () => parts.close?.(),
    () => rmSync(root, { recursive: true, force: true }),
  )
  return (await parts.check?.(AbortSignal.timeout(5000))) ?? []
}

describe('checkAdapters', () => {
  test('reports ok when nothing is connected', async () => {
    expect(await check({ config: {} })).toEqual([{ status: 'ok', detail: 'no I2C/SPI adapter is connected' }])
  })

  test('warns when the transport is linux and no bus is named', async () => {
    expect(await check({ config: { adapter: { transport: 'linux' } } })).toEqual([
      expect.objectContaining({ status: 'warn', detail: 'the transport `linux` only uses the buses of the kernel, and none is named' }),
    ])
  })

  test('fails for a missing bus, with the fix', async () => {
    const [finding] = await check({ config: { adapter: { i2c: '/dev/i2c-255' } } })
    expect(finding).toMatchObject({ status: 'fail', detail: 'There is no /dev/i2c-255', fix: expect.stringContaining('i2c-dev') })
  })

  test('fails for a missing package, with the command to install it', async () => {
    const require = async () => Promise.reject(new AppError('unavailable', 'node-hid cannot be loaded'))
    const listHid = async () => [{ vendor: 0x04d8, product: 0x00dd, serial: '', path: 'x' }]
    expect(await check({ config: {}, platform: 'darwin', native: { require, listHid } })).toEqual([
      { status: 'fail', detail: 'node-hid cannot be loaded', fix: expect.stringContaining('libusb') },
    ])
  })

  test('fails for a device without permission, with the udev rule', async () => {
    const root = temporaryRoot()
    const folder = join(root, 'sys/class/hidraw/hidraw999/device')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'uevent'), 'HID_ID=0003:000004D8:000000DD\n')
    const [finding] = await check({ config: {}, root })
    expect(finding).toMatchObject({
      status: 'fail',
      fix: expect.stringContaining('SUBSYSTEM=="hidraw", ATTRS{idVendor}=="04d8", ATTRS{idProduct}=="00dd"'),
    })
  })

  test.each([
    ['MCP2221', 'bus/hid/drivers/mcp2221/0003:04D8:00DD.0001', 'as i2c under [peripherals.adapter]'],
    ['CH341A', 'bus/usb/drivers/spi-ch341/1-2:1.0', 'blacklist spi_ch341'],
  ])('warns about an %s that a kernel driver owns, with the fix', async (name, device, fix) => {
    const root = temporaryRoot()
    mkdirSync(join(root, 'sys', device), { recursive: true })
    const expected = { status: 'warn', detail: expect.stringContaining(name), fix: expect.stringContaining(fix) }
    expect(await check({ config: {}, root })).toMatchObject([expected])
  })

  test('warns about a setting without effect', async () => {
    const listUsb = async () => [{ vendor: 0x1a86, product: 0x5512, serial: '', path: 'x', bus: '1', address: 2 }]
    expect(await check({ config: { adapter: { volts: 5 } }, platform: 'darwin', native: { listUsb } })).toMatchObject([
      { status: 'ok' },
      { status: 'warn', detail: expect.stringContaining('5 V') },
    ])
  })
})
