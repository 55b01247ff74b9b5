/** Tests a simulated MCP2221 on the kernel's virtual HID bus, with the package node-hid and the real /sys. */
import assert from 'node:assert/strict'
import { type VmTestContext, vmCase } from '@sluice/qa/vm/vm-case'
import { nativePackages } from '../../native.ts'
import { hardwareKit } from '../hardware-kit.ts'
import { Mcp2221Chip } from '../mcp2221-chip.ts'
import { installLibusb, missingLibusb } from './libusb.ts'
import { uhidDevice } from './uhid-device.ts'
import { withoutRoot } from './without-root.ts'

const arrange = async ({ after }: VmTestContext) => {
  await installLibusb()
  const chip = new Mcp2221Chip()
  const unplug = await uhidDevice({
    vendor: 0x04d8,
    product: 0x00dd,
    name: 'MCP2221',
    port: 'uhid/one',
    serial: '0001',
    answer: (report) => chip.answer(report),
  })
  after(unplug)
  const kit = hardwareKit({ config: {}, native: nativePackages, root: '/', host: { dataDir: '/tmp/data' } })
  after(() => kit.parts.close?.())
  return { ...kit, chip, unplug }
}

export default vmCase({
  modules: ['uhid', 'hid-generic'],
  skipReason: missingLibusb,
  tests: {
    'it is found without configuration and its bus can be scanned': async (context) => {
      const { run } = await arrange(context)
      assert.equal(await run('i2c_scan', {}), 'I2C scan found 2 device(s): 0x48, 0x50')
    },

    'a read with a register makes a repeated start': async (context) => {
      const { run, chip } = await arrange(context)
      assert.equal(await run('i2c_read', { addr: 0x48, register: 0, len: 2 }), 'I2C read from addr 0x48: [0x19, 0x00]')
      assert.deepEqual(chip.bus.log, ['S 90 00', 'Sr 91 read 2 P'])
    },

    'more than one report is written and read in one transaction each': async (context) => {
      const { run, chip } = await arrange(context)
      const bytes = Array.from({ length: 200 }, (_none, index) => index)
      await run('i2c_write', { addr: 0x50, bytes: [0, ...bytes] })
      const hex = bytes.map((byte) => `0x${byte.toString(16).padStart(2, '0')}`).join(', ')
      assert.equal(await run('i2c_read', { addr: 0x50, register: 0, len: 200 }), `I2C read from addr 0x50: [${hex}]`)
      assert.equal(chip.bus.log.length, 3)
    },

    'its lines are set and read': async (context) => {
      const { run, chip } = await arrange(context)
      assert.match(await run('gpio_adapter', { action: 'set', lines: 0b0101, direction: 0b0101, value: 0b0100 }), /value 0b00000100$/)
      assert.equal(chip.pins[2]?.value, 1)
    },

    'it is unavailable when it is unplugged between two calls': async (context) => {
      const { run, unplug } = await arrange(context)
      await run('i2c_scan', {})
      await unplug()
      await assert.rejects(run('i2c_scan', {}), { code: 'unavailable' })
    },

    'without permission the error contains the udev rule': async (context) => {
      const { run } = await arrange(context)
      await nativePackages.require('node-hid')
      const text = await withoutRoot(() => run('i2c_scan', {}))
      assert.match(text, /^No permission for MCP2221 at .*: put `SUBSYSTEM=="hidraw"/)
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
