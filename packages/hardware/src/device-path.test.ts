import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { checkDevicePath, type DeviceKind, isDevicePath, scannedPath } from './device-path.ts'

const KINDS: readonly DeviceKind[] = ['serial', 'i2c', 'spi', 'gpio']

describe('isDevicePath', () => {
  test.each<[DeviceKind, string]>([
    ['serial', '/dev/ttyACM0'],
    ['serial', '/dev/ttyUSB12'],
    ['serial', '/dev/tty.usbmodem-14201'],
    ['serial', '/dev/cu.usbserial-A50285BI'],
    ['serial', 'COM3'],
    ['serial', '/dev/serial/by-id/usb-1a86_USB_Serial-if00-port0'],
    ['serial', '/dev/serial/by-path/pci-0000:00:14.0-usb-0:2:1.0'],
    ['i2c', '/dev/i2c-1'],
    ['spi', '/dev/spidev0.1'],
    ['gpio', '/dev/gpiochip4'],
  ])('accepts a %s path: %s', (kind, path) => {
    expect(KINDS.filter((each) => isDevicePath(path, each))).toEqual([kind])
  })

  test.each([
    '/dev/ttyACM0/../sda',
    '/dev/serial/by-id/../../sda',
    '/dev/serial/by-id/..',
    '/dev/serial/by-id/a/b',
    '/dev/serial/by-name/a',
    '/dev/serial/by-id/',
    '/dev/ttyACM0/',
    '/dev/ttyACM',
    '/dev//ttyACM0',
    '/dev/ttyACM0\0',
    '/dev/ttyACM0\n',
    ' /dev/ttyACM0',
    '/dev/./ttyACM0',
    'dev/ttyACM0',
    '/dev/ttyACM0000',
    '/dev/tty',
    '/dev/ttyS0',
    '/dev/mem',
    '/dev/sda',
    '/dev/cu.usbmodem/x',
    '/dev/cu.usbmodem..',
    '/dev/i2c-1/x',
    '/dev/spidev0',
    '/dev/gpiochip',
    'COM3:',
    '\\\\.\\COM3',
    '/tmp/ttyACM0',
    '',
  ])('rejects %j', async (path) => {
    for (const kind of KINDS) await expect(checkDevicePath(path, kind)).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('accepts no path with a detour, whatever its pieces', () => {
    const piece = fc.constantFrom('/dev/', 'ttyACM0', 'i2c-1', 'spidev0.0', 'gpiochip0', '..', '/', '.', '\0', '\n', '0', 'COM1', 'é')
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
        const path = pieces.join('')
        for (const kind of KINDS) if (isDevicePath(path, kind)) expect(path).toMatch(/^(?:\/dev\/[A-Za-z]+[A-Za-z0-9.-]*|COM\d+)$/)
      }),
    )
  })

  test('shows only the beginning of a long text', async () => {
    const error = await checkDevicePath('x'.repeat(100_000), 'serial').catch((cause: Error) => cause)
    expect((error as Error).message.length).toBeLessThan(400)
  })
})

describe('checkDevicePath', () => {
  test('throws `not_found` when nothing is there', async () => {
    await expect(checkDevicePath('/dev/ttyACM999', 'serial')).rejects.toMatchObject({ code: 'not_found' })
  })

  test.skipIf(process.platform === 'win32')('does not read a COM port as a file in the current folder', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'device-'))
    const before = process.cwd()
    onTestFinished(() => {
      process.chdir(before)
      rmSync(folder, { recursive: true })
    })
    symlinkSync('/dev/null', join(folder, 'COM3'))
    process.chdir(folder)
    await expect(checkDevicePath('COM3', 'serial')).rejects.toMatchObject({ code: 'not_found' })
  })

  // Only root can create a link in /dev.
  test.skipIf(process.platform !== 'linux' || process.getuid?.() !== 0)('throws `forbidden` for a symbolic link (needs root)', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'device-'))
    const link = '/dev/gpiochip998'
    onTestFinished(() => {
      rmSync(folder, { recursive: true })
      rmSync(link, { force: true })
    })
    symlinkSync('/dev/null', link)
    await expect(checkDevicePath(link, 'gpio')).rejects.toMatchObject({ code: 'forbidden' })
  })

  test.skipIf(process.platform !== 'linux' || process.getuid?.() !== 0)(
    'follows a name below /dev/serial to a port only (needs root)',
    async () => {
      const [folder, port] = ['/dev/serial/by-id', '/dev/ttyACM997']
      const existed = existsSync('/dev/serial')
      const links = ['port', 'disk', 'gone'].map((name) => `${folder}/sluice-test-${name}`)
      onTestFinished(() => {
        for (const path of [...links, port]) rmSync(path, { force: true })
        if (!existed) rmSync('/dev/serial', { recursive: true, force: true })
      })
      mkdirSync(folder, { recursive: true })
      const [toPort = '', toDisk = '', toNothing = ''] = links
      execFileSync('mknod', [port, 'c', '1', '3'])
      symlinkSync('../../ttyACM997', toPort)
      symlinkSync('/dev/null', toDisk)
      symlinkSync('../../ttyACM996', toNothing)
      await expect(checkDevicePath(toPort, 'serial')).resolves.toBeUndefined()
      expect(await scannedPath(toPort)).toBe(port)
      await expect(checkDevicePath(toDisk, 'serial')).rejects.toMatchObject({ code: 'forbidden' })
      await expect(checkDevicePath(toNothing, 'serial')).rejects.toMatchObject({ code: 'not_found' })
      expect(await scannedPath(toNothing)).toBe(toNothing)
    },
  )
})
