/** The simulated devices: each appears as described and works. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { access, readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { i2cStubModules, i2cStubPath } from '../../vm/devices/i2c-stub.ts'
import { becomeSingleBoardComputer } from '../../vm/devices/single-board-computer.ts'
import { openTerminal } from '../../vm/devices/terminal.ts'
import { createUsbBoard, usbBoardModules } from '../../vm/devices/usb-board.ts'
import { vmCase } from '../../vm/vm-case.ts'

const run = promisify(execFile)

export default vmCase({
  modules: [...usbBoardModules(2), ...i2cStubModules(0x48, 0x50), 'spi-sim', 'gpio-sim'],
  udev: true,
  tests: {
    'a USB board has the identity it was given': async () => {
      const board = await createUsbBoard({ vendor: '2e8a', product: '0005', serialNumber: 'E661', productName: 'Board in FS mode' })
      const port = await board.plug()
      const { stdout } = await run('udevadm', ['info', '--query=property', port])
      assert.match(stdout, /^ID_VENDOR_ID=2e8a$/m)
      assert.match(stdout, /^ID_MODEL_ID=0005$/m)
      assert.match(stdout, /^ID_SERIAL_SHORT=E661$/m)
      await board.unplug()
      await assert.rejects(access(port))
    },
    'a USB board passes bytes in both directions': async ({ after }) => {
      const board = await createUsbBoard({ vendor: '2341', product: '0043' })
      const port = await board.plug()
      after(() => board.unplug())
      await run('stty', ['-F', port, 'raw', '-echo'])
      const echo = await openTerminal(board.boardEnd, (bytes) => void echo.write(Buffer.from(bytes).reverse()))
      after(() => echo.close())
      const { promise, resolve } = Promise.withResolvers<string>()
      const line = await openTerminal(port, (bytes) => resolve(bytes.toString('latin1')))
      after(() => line.close())
      await line.write('abc')
      assert.equal(await promise, 'cba')
    },
    'an I2C bus exists': async () => {
      assert.match(await i2cStubPath(), /^\/dev\/i2c-\d+$/)
    },
    'a SPI bus has an echo and a flash': async () => {
      await Promise.all([access('/dev/spidev0.0'), access('/dev/spidev0.1')])
    },
    'a single-board computer shows model, pins and temperature': async () => {
      const { gpio } = await becomeSingleBoardComputer('Raspberry Pi 5 Model B Rev 1.0')
      await access(gpio.path)
      await gpio.drive(17, 1)
      assert.equal(await gpio.level(17), 1)
      await gpio.drive(17, 0)
      assert.equal(await gpio.level(17), 0)
      assert.equal(await readFile('/sys/firmware/devicetree/base/model', 'utf8'), 'Raspberry Pi 5 Model B Rev 1.0\0')
      assert.equal((await readFile('/sys/class/thermal/thermal_zone0/temp', 'utf8')).trim(), '48312')
    },
  },
})
