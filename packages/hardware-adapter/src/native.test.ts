import { expect, test } from 'vitest'
import { nativePackages } from './native.ts'

test.each(['i2c-bus', 'spi-device', 'node-hid', 'usb'] as const)('%s is there, or it is said what to install', async (name) => {
  await nativePackages.require(name).catch((error: unknown) => {
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringMatching(new RegExp(`${name} cannot be loaded .*install`)) })
  })
})

test('a device that is no device node is refused before anything is loaded', async () => {
  await expect(nativePackages.openI2c('/dev/i2c-255')).rejects.toMatchObject({ code: 'not_found' })
  await expect(nativePackages.openI2c('/dev/i2c-1/../null')).rejects.toMatchObject({ code: 'invalid_request' })
  await expect(nativePackages.openSpi('/dev/spidev255.0', 0)).rejects.toMatchObject({ code: 'not_found' })
})
