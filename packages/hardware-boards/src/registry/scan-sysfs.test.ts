import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { scanSysfs } from './scan-sysfs.ts'

const roots: string[] = []
afterEach(async () => {
  for (const root of roots.splice(0)) await rm(root, { recursive: true })
})

/** Creates a /sys with files and, in `class/tty`, links to devices. */
async function sysfs(files: Readonly<Record<string, string>>, ttys: Readonly<Record<string, string>>) {
  const root = await mkdtemp(join(tmpdir(), 'sysfs-'))
  roots.push(root)
  const at = (path: string) => join(root, 'sys', path)
  await mkdir(at('class/tty'), { recursive: true })
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(at(path)), { recursive: true })
    await writeFile(at(path), text)
  }
  for (const [name, device] of Object.entries(ttys)) {
    await mkdir(at(device), { recursive: true })
    await mkdir(at(`class/tty/${name}`), { recursive: true })
    await symlink(at(device), at(`class/tty/${name}/device`))
  }
  return scanSysfs(root)
}

const UNO = {
  'devices/pci/usb1/1-1/idVendor': '2341\n',
  'devices/pci/usb1/1-1/idProduct': '0043\n',
  'devices/pci/usb1/1-1/serial': '75735303231351F0A1B2\n',
  'devices/pci/usb1/1-1/manufacturer': 'Arduino (www.arduino.cc)\n',
}

describe('scanSysfs', () => {
  test('returns a port with its USB device and the place of that device', async () => {
    const scan = await sysfs(UNO, { ttyACM0: 'devices/pci/usb1/1-1/1-1:1.0' })
    const usb = { vendor: '2341', product: '0043', serialNumber: '75735303231351F0A1B2', manufacturer: 'Arduino (www.arduino.cc)' }
    expect((await scan()).ports).toEqual([{ path: '/dev/ttyACM0', usb, location: '1-1' }])
  })

  test('finds a port behind a bridge chip one level deeper', async () => {
    const scan = await sysfs(UNO, { ttyUSB3: 'devices/pci/usb1/1-1/1-1:1.0/ttyUSB3' })
    expect((await scan()).ports.map(({ path, location }) => [path, location])).toEqual([['/dev/ttyUSB3', '1-1']])
  })

  test('returns built-in ports without a USB device, and not the console', async () => {
    const scan = await sysfs(
      { 'class/tty/console/active': 'tty0 ttyAMA0\n', 'class/tty/ttyS0/dev': '4:64' },
      { ttyAMA0: 'devices/platform/uart0', ttyAMA1: 'devices/platform/uart1', tty1: 'devices/virtual' },
    )
    expect((await scan()).ports).toEqual([{ path: '/dev/ttyAMA1', usb: null, location: null }])
  })

  test('returns other USB devices without hubs and without control characters', async () => {
    const scan = await sysfs(
      {
        'bus/usb/devices/1-2/idVendor': '12D1',
        'bus/usb/devices/1-2/idProduct': '1001',
        'bus/usb/devices/1-2/product': 'Mo\u001b[31mdem\n',
        'bus/usb/devices/1-2/bDeviceClass': '00',
        'bus/usb/devices/1-3/idVendor': '05e3',
        'bus/usb/devices/1-3/bDeviceClass': '09',
        'bus/usb/devices/1-2:1.0/bInterfaceClass': 'ff',
        'bus/usb/devices/usb1/idVendor': '1d6b',
      },
      {},
    )
    expect((await scan()).usb).toEqual([{ vendor: '12d1', product: '1001', name: 'Mo[31mdem' }])
  })

  test('returns nothing without /sys', async () => {
    await expect(scanSysfs('/nowhere')()).resolves.toEqual({ ports: [], usb: [] })
  })
})
