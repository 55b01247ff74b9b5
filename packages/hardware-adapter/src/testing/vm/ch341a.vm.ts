/** Tests a simulated CH341A on the kernel's virtual USB controller, with the package `usb` and the real /sys. */
import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { type VmTestContext, vmCase } from '@sluice/qa/vm/vm-case'
import { testClock } from '@sluice/testkit/clock'
import { findUsbAdapters } from '../../find-adapters.ts'
import { nativePackages } from '../../native.ts'
import { hardwareKit } from '../hardware-kit.ts'
import { usbFunction, type VirtualUsb } from './usb-function.ts'
import { withoutRoot } from './without-root.ts'

/** The first test plugs the device in, because this file is also imported on machines without such a controller. */
const usb: { device?: Promise<VirtualUsb> } = {}

const until = async (check: () => boolean | Promise<boolean>, signal: AbortSignal): Promise<void> => {
  while (!(await check())) {
    signal.throwIfAborted()
    await delay(50)
  }
}

const isFound = async () => (await findUsbAdapters(nativePackages, { platform: 'linux', sys: '/sys' })).length > 0

const arrange = async ({ after, signal }: VmTestContext) => {
  usb.device ??= usbFunction('ch341a-device.ts')
  const device = await usb.device
  await until(isFound, signal)
  const clock = {
    ...testClock(),
    sleep: (ms: number, stop?: AbortSignal) => delay(ms, undefined, { signal: stop }).catch(() => undefined),
  }
  const kit = hardwareKit({ config: {}, native: nativePackages, root: '/', host: { dataDir: '/tmp/data', clock } })
  after(() => kit.parts.close?.())
  return { ...kit, device }
}

export default vmCase({
  modules: ['dummy_hcd', 'libcomposite', 'usb_f_fs'],
  tests: {
    'it is found without configuration and its bus can be scanned': async (context) => {
      const { run } = await arrange(context)
      assert.equal(await run('i2c_scan', {}), 'I2C scan found 2 device(s): 0x48, 0x50')
    },

    'a register is read': async (context) => {
      const { run } = await arrange(context)
      assert.equal(await run('i2c_read', { addr: 0x48, register: 0, len: 2 }), 'I2C read from addr 0x48: [0x19, 0x00]')
    },

    'more than one packet is written and read back': async (context) => {
      const { run } = await arrange(context)
      const bytes = Array.from({ length: 200 }, (_none, index) => index)
      await run('i2c_write', { addr: 0x50, bytes: [0, ...bytes] })
      const hex = bytes.map((byte) => `0x${byte.toString(16).padStart(2, '0')}`).join(', ')
      assert.equal(await run('i2c_read', { addr: 0x50, register: 0, len: 200 }), `I2C read from addr 0x50: [${hex}]`)
    },

    'a serial flash returns its id and stores data': async (context) => {
      const { run } = await arrange(context)
      assert.match(await run('spi_transfer', { bytes: [0x9f, 0, 0, 0] }), /0xef, 0x40, 0x18\]$/)
      await run('spi_transfer', { bytes: [0x06] })
      await run('spi_transfer', { bytes: [0x02, 0, 0, 0, ...Array.from({ length: 64 }, (_none, index) => index)] })
      assert.match(await run('spi_transfer', { bytes: [0x03, 0, 0, 60, 0, 0, 0, 0] }), /0x3c, 0x3d, 0x3e, 0x3f\]$/)
    },

    'its lines are set and read': async (context) => {
      const { run } = await arrange(context)
      assert.match(await run('gpio_adapter', { action: 'set', lines: 0b0110, direction: 0b0110, value: 0b0100 }), /value 0b10000100$/)
    },

    'it keeps its alias when it is unplugged and plugged in again': async (context) => {
      const { run, parts, available, host, device } = await arrange(context)
      await parts.register?.(context.signal)
      await until(available, context.signal)
      await run('i2c_scan', {})
      await device.unplug()
      await until(() => !available(), context.signal)
      await device.replug()
      await until(available, context.signal)
      assert.equal(await run('i2c_scan', { device: 'adapter0' }), 'I2C scan found 2 device(s): 0x48, 0x50')
      assert.deepEqual(host.refreshes, ['adapter0 is there (CH341A)', 'adapter0 is gone', 'adapter0 is there (CH341A)'])
    },

    'without permission the error contains the udev rule': async (context) => {
      const { run } = await arrange(context)
      const text = await withoutRoot(() => run('i2c_scan', {}))
      assert.match(text, /^No permission for CH341A at .*: put `SUBSYSTEM=="usb"/)
    },

    'it is reported as in use while another program has it': async (context) => {
      const { run } = await arrange(context)
      const other = await arrange(context)
      await run('i2c_scan', {})
      await assert.rejects(other.run('i2c_scan', {}), { code: 'unavailable', message: /is in use by another program/ })
    },

    'doctor reports that it can be used': async (context) => {
      const { parts } = await arrange(context)
      const findings = await parts.check?.(context.signal)
      assert.deepEqual(
        findings?.map(({ status }) => status),
        ['ok'],
      )
    },
  },
})
