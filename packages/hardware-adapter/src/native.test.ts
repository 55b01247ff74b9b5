import { describe, expect, test } from 'vitest'
import { nativePackages } from './native.ts'

describe('the native packages', () => {
  test.each(['i2c-bus', 'spi-device', 'node-hid', 'usb'] as const)('load %s or name the command to install it', async (name) => {
    await nativePackages.require(name).catch((error: unknown) => {
      expect(error).toMatchObject({ code: 'unavailable', message: expect.stringMatching(new RegExp(`${name} cannot be loaded .*install`)) })
    })
  })

  test('refuse a path that is not a device node before they load a package', async () => {
    await expect(nativePackages.openI2c('/dev/i2c-255')).rejects.toMatchObject({ code: 'not_found' })
    await expect(nativePackages.openI2c('/dev/i2c-1/../null')).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(nativePackages.openSpi('/dev/spidev255.0', 0)).rejects.toMatchObject({ code: 'not_found' })
  })
})
