/** Tests the kernel's own I2C and SPI devices with the native packages: i2c-stub (SMBus only), an SPI loopback and a serial flash. */
import assert from 'node:assert/strict'
import { type VmCase, vmCase } from '@sluice/qa/vm/vm-case'
import { nativePackages } from '../../native.ts'
import { hardwareKit } from '../hardware-kit.ts'
import { withoutRoot } from './without-root.ts'

const kit = (adapter: object) =>
  hardwareKit({
    config: { adapter: { transport: 'linux', ...adapter } },
    native: nativePackages,
    root: '/',
    host: { dataDir: '/tmp/data' },
  })

const onStub = (): ReturnType<typeof kit> => kit({ i2c: '/dev/i2c-0' })

const definition: VmCase = vmCase({
  modules: ['i2c-dev', 'i2c-stub chip_addr=0x48,0x50', 'spi-sim'],
  tests: {
    'a scan finds the chips of the bus': async () => {
      assert.equal(await onStub().run('i2c_scan', {}), 'I2C scan found 2 device(s): 0x48, 0x50')
    },

    'a write is read back by byte, by word and by block': async () => {
      const { run } = onStub()
      await run('i2c_write', { addr: 0x50, bytes: [0x10, 1] })
      await run('i2c_write', { addr: 0x50, bytes: [0x11, 2, 3, 4, 5] })
      assert.equal(await run('i2c_read', { addr: 0x50, register: 0x10, len: 1 }), 'I2C read from addr 0x50: [0x01]')
      assert.equal(await run('i2c_read', { addr: 0x50, register: 0x10, len: 5 }), 'I2C read from addr 0x50: [0x01, 0x02, 0x03, 0x04, 0x05]')
    },

    'at most 32 bytes are read after a register': async () => {
      const { run } = onStub()
      await run('i2c_write', { addr: 0x50, bytes: [0x20, ...new Array(32).fill(9)] })
      assert.equal(
        await run('i2c_read', { addr: 0x50, register: 0x20, len: 32 }),
        `I2C read from addr 0x50: [${new Array(32).fill('0x09').join(', ')}]`,
      )
      await assert.rejects(run('i2c_read', { addr: 0x50, register: 0x20, len: 33 }), {
        code: 'invalid_request',
        message: /at most 32 bytes/,
      })
    },

    'transfers that an SMBus cannot make are refused': async () => {
      const { run } = onStub()
      await assert.rejects(run('i2c_read', { addr: 0x50, len: 2 }), { code: 'invalid_request', message: /one byte at a time/ })
      await assert.rejects(run('i2c_write', { addr: 0x50, bytes: new Array(34).fill(0) }), {
        code: 'invalid_request',
        message: /at most 33/,
      })
    },

    'an unused address is not_found': async () => {
      await assert.rejects(onStub().run('i2c_read', { addr: 0x22, register: 0 }), { code: 'not_found' })
    },

    'a missing bus or device is not_found': async () => {
      await assert.rejects(kit({ i2c: '/dev/i2c-9' }).run('i2c_scan', {}), { code: 'not_found', message: 'There is no /dev/i2c-9' })
      await assert.rejects(kit({ spi: '/dev/spidev3.0' }).run('spi_transfer', { bytes: [0] }), { code: 'not_found' })
    },

    'SPI returns the bytes of a loopback, up to 4096': async () => {
      const { run } = kit({ spi: '/dev/spidev0.0' })
      assert.equal(
        await run('spi_transfer', { bytes: [1, 2, 3], mode: 3, speed_hz: 500_000 }),
        'SPI transfer complete. Received: [0x01, 0x02, 0x03]',
      )
      const bytes = Array.from({ length: 4096 }, (_none, index) => index % 256)
      const [answer] = [await run('spi_transfer', { bytes })]
      assert.equal(
        answer,
        `SPI transfer complete. Received: [${bytes.map((byte) => `0x${byte.toString(16).padStart(2, '0')}`).join(', ')}]`,
      )
    },

    'a serial flash returns its id and stores data': async () => {
      const { run } = kit({ spi: '/dev/spidev0.1' })
      assert.match(await run('spi_transfer', { bytes: [0x9f, 0, 0, 0] }), /0xef, 0x40, 0x18\]$/)
      await run('spi_transfer', { bytes: [0x06] })
      await run('spi_transfer', { bytes: [0x02, 0, 1, 0, 0xca, 0xfe] })
      assert.match(await run('spi_transfer', { bytes: [0x03, 0, 1, 0, 0, 0] }), /0xca, 0xfe\]$/)
    },

    'without permission the error names the group': async () => {
      const { run } = kit({ i2c: '/dev/i2c-0', spi: '/dev/spidev0.0' })
      assert.match(await withoutRoot(() => run('i2c_scan', {})), /^No permission for \/dev\/i2c-0: .*`i2c`/)
      assert.match(await withoutRoot(() => run('spi_transfer', { bytes: [0] })), /^No permission for \/dev\/spidev0.0: .*`spi`/)
    },

    'doctor reports which buses can be used': async () => {
      const { parts } = kit({ i2c: '/dev/i2c-0', spi: '/dev/spidev7.0' })
      const findings = await parts.check?.(AbortSignal.timeout(5000))
      assert.deepEqual(
        findings?.map(({ status }) => status),
        ['ok', 'fail'],
      )
    },
  },
})

export default definition
