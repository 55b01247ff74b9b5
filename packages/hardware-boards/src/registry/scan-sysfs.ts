/** Scans USB devices and serial ports below /sys on Linux, which needs neither a process nor a native module. */
import { readdir, readFile, realpath } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { isDevicePath } from '@sluice/hardware'
import type { UsbIdentity, UsbSeen } from '../devices.ts'
import type { ScanUsb, SeenPort } from './usb.ts'

/** Further ports and devices are ignored. */
const PORTS_MAX = 64
const USB_MAX = 256
const TEXT_CHARS_MAX = 128
/** The most folders between a port and the USB device it belongs to. */
const LEVELS_MAX = 6
const HUB_CLASS = '09'

/** Tests pass another `root`. */
export const scanSysfs =
  (root = '/'): ScanUsb =>
  async () => ({ ports: await portsBelow(root), usb: await usbBelow(root) })

async function portsBelow(root: string): Promise<SeenPort[]> {
  const folder = join(root, 'sys/class/tty')
  const names = (await namesIn(folder)).filter((name) => isDevicePath(`/dev/${name}`, 'serial')).sort(byNumber)
  const consoles = (await textOf(join(folder, 'console/active'))).split(' ')
  // The console of the machine is left out, because its login program would read the requests to a board.
  const wanted = names.filter((name) => !consoles.includes(name)).slice(0, PORTS_MAX)
  const ports = await Promise.all(wanted.map((name) => portOf(folder, name)))
  return ports.filter((port) => port !== undefined)
}

async function portOf(folder: string, name: string): Promise<SeenPort | undefined> {
  const path = `/dev/${name}`
  // A port without a device is a placeholder of its driver.
  const device = await realpath(join(folder, name, 'device')).catch(() => undefined)
  if (device === undefined) return { path, usb: null, location: null }
  let above = device
  for (let level = 0; level < LEVELS_MAX; level++, above = dirname(above)) {
    const usb = await identityOf(above)
    if (usb) return { path, usb, location: basename(above) }
  }
  return { path, usb: null, location: null }
}

async function identityOf(folder: string): Promise<UsbIdentity | undefined> {
  const vendor = await textOf(join(folder, 'idVendor'))
  if (!/^[0-9a-f]{4}$/i.test(vendor)) return undefined
  const [product, serialNumber, manufacturer] = await Promise.all(
    ['idProduct', 'serial', 'manufacturer'].map((file) => textOf(join(folder, file))),
  )
  return {
    vendor: vendor.toLowerCase(),
    product: (product ?? '').toLowerCase(),
    serialNumber: serialNumber || null,
    manufacturer: manufacturer || null,
  }
}

async function usbBelow(root: string): Promise<UsbSeen[]> {
  const folder = join(root, 'sys/bus/usb/devices')
  // `1-1.2` is a device, `1-1.2:1.0` is one of its interfaces, and `usb1` is a controller.
  const names = (await namesIn(folder)).filter((name) => /^\d+-[\d.]+$/.test(name)).slice(0, USB_MAX)
  const all = await Promise.all(names.map((name) => usbOf(join(folder, name))))
  return all.filter((usb) => usb !== undefined)
}

async function usbOf(folder: string): Promise<UsbSeen | undefined> {
  const [deviceClass, vendor = '', product = '', name = ''] = await Promise.all(
    ['bDeviceClass', 'idVendor', 'idProduct', 'product'].map((file) => textOf(join(folder, file))),
  )
  return deviceClass === HUB_CLASS || vendor === '' ? undefined : { vendor: vendor.toLowerCase(), product: product.toLowerCase(), name }
}

const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => [])

/** Returns the first characters of a file, without control characters, because the device supplies the text. */
const textOf = async (file: string): Promise<string> => {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text.replace(/\p{C}/gu, '').trim().slice(0, TEXT_CHARS_MAX)
}

/** Sorts ttyACM2 before ttyACM10. */
const byNumber = (a: string, b: string): number => a.localeCompare(b, 'en', { numeric: true })
