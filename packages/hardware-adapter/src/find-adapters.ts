/** Finds the USB adapters that are connected. On Linux it reads the kernel's files and loads no native package. */
import { readdir, readFile, readlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { ListedDevice, Native } from './native.ts'
import type { UsbAddress } from './usb-port.ts'

/** The largest number of entries of a folder that are read. */
const DEVICES_MAX = 256

export type AdapterKind = 'mcp2221' | 'ch341a' | 'linux' | 'sim'

/** An adapter that was found and is not open yet. */
export interface FoundAdapter {
  readonly kind: AdapterKind
  /** Empty when the adapter has no serial number. */
  readonly serial: string
  /** The port it is plugged into. Two adapters of a kind never have the same port. */
  readonly port: string
  /** The path to open, such as `/dev/hidraw0`. */
  readonly path: string
  /** A different value each time the adapter is plugged in, where the system provides one; `path` may stay the same. */
  readonly instance?: string
  /** The address of a USB device that is not a HID device. */
  readonly usb?: { readonly bus: string; readonly address: number }
}

export interface UsbId {
  readonly kind: AdapterKind
  readonly vendor: number
  readonly product: number
}

export const MCP2221_ID = { kind: 'mcp2221', vendor: 0x04d8, product: 0x00dd } as const satisfies UsbId
export const CH341A_ID = { kind: 'ch341a', vendor: 0x1a86, product: 0x5512 } as const satisfies UsbId

/** The native packages and the folders of this machine. */
export interface AdapterEnvironment {
  readonly native: Native
  readonly paths: SystemPaths
}

/** The system that is searched. Tests use a folder of their own. */
export interface SystemPaths {
  readonly platform: NodeJS.Platform
  /** The kernel's description of devices: `/sys`. */
  readonly sys: string
  /** The device nodes: `/dev`. */
  readonly dev: string
}

export const thisMachine: SystemPaths = { platform: process.platform, sys: '/sys', dev: '/dev' }

/** Returns the adapters sorted by port. Throws `unavailable` when a native package is needed for the search and is missing. */
export async function findUsbAdapters(
  native: Native,
  { platform, sys }: { readonly platform: NodeJS.Platform; readonly sys: string },
): Promise<readonly FoundAdapter[]> {
  const found = platform === 'linux' ? [...(await hidrawAdapters(sys)), ...(await usbAdapters(sys))] : await listedAdapters(native)
  return found.toSorted((one, other) => one.port.localeCompare(other.port, 'en', { numeric: true }))
}

async function hidrawAdapters(sys: string): Promise<FoundAdapter[]> {
  const found: FoundAdapter[] = []
  for (const name of await entries(join(sys, 'class/hidraw'))) {
    const lines = (await text(join(sys, 'class/hidraw', name, 'device/uevent'))).split('\n')
    const value = (key: string) => lines.find((line) => line.startsWith(`${key}=`))?.slice(key.length + 1) ?? ''
    const [, vendor, product] = value('HID_ID').split(':')
    if (!isDevice(MCP2221_ID, vendor, product)) continue
    const instance = basename(await readlink(join(sys, 'class/hidraw', name, 'device')).catch(() => ''))
    // Without a physical port the name of the node identifies the device.
    found.push({ kind: 'mcp2221', serial: value('HID_UNIQ'), port: value('HID_PHYS') || name, path: `/dev/${name}`, instance })
  }
  return found
}

async function usbAdapters(sys: string): Promise<FoundAdapter[]> {
  const folder = join(sys, 'bus/usb/devices')
  const found: FoundAdapter[] = []
  // A name with a colon is an interface of a device.
  for (const port of (await entries(folder)).filter((name) => !name.includes(':'))) {
    const attribute = (name: string) => text(join(folder, port, name))
    if (!isDevice(CH341A_ID, await attribute('idVendor'), await attribute('idProduct'))) continue
    const [bus, address] = [await attribute('busnum'), await attribute('devnum')]
    const path = `/dev/bus/usb/${bus.padStart(3, '0')}/${address.padStart(3, '0')}`
    found.push({ kind: 'ch341a', serial: await attribute('serial'), port, path, usb: { bus, address: Number(address) } })
  }
  return found
}

/** An adapter that a kernel driver owns. */
export interface KernelDriver {
  /** The product name of the adapter. */
  readonly name: string
  /** The driver's module name. */
  readonly driver: string
  /** The kind of bus that the driver provides. */
  readonly key: 'i2c' | 'spi'
}

const DRIVERS = [
  { folder: 'bus/hid/drivers/mcp2221', device: /^[\dA-F]{4}:04D8:00DD\./i, name: 'MCP2221', driver: 'hid_mcp2221', key: 'i2c' },
  { folder: 'bus/usb/drivers/spi-ch341', device: /^\d+-[\d.]+:/, name: 'CH341A', driver: 'spi_ch341', key: 'spi' },
] as const

/** Returns the adapters that a kernel driver owns, so that Sluice cannot open them. */
export async function adaptersOfKernelDrivers(sys: string): Promise<readonly KernelDriver[]> {
  const owned: KernelDriver[] = []
  for (const { folder, device, ...driver } of DRIVERS) {
    if ((await entries(join(sys, folder))).some((name) => device.test(name))) owned.push(driver)
  }
  return owned
}

/** Finds the adapters through the native packages, for systems without /sys. */
async function listedAdapters(native: Native): Promise<FoundAdapter[]> {
  const isA =
    ({ vendor, product }: UsbId) =>
    (device: ListedDevice) =>
      device.vendor === vendor && device.product === product
  const hid = (await native.listHid()).filter(isA(MCP2221_ID))
  const usb: readonly (ListedDevice & UsbAddress)[] = (await native.listUsb()).filter(isA(CH341A_ID))
  return [
    ...hid.map(({ serial, path }): FoundAdapter => ({ kind: 'mcp2221', serial, port: path, path })),
    ...usb.map(({ serial, path, bus, address }): FoundAdapter => ({ kind: 'ch341a', serial, port: path, path, usb: { bus, address } })),
  ]
}

const isDevice = ({ vendor, product }: UsbId, vendorHex = '', productHex = ''): boolean =>
  Number.parseInt(vendorHex, 16) === vendor && Number.parseInt(productHex, 16) === product

const entries = async (folder: string): Promise<string[]> =>
  (await readdir(folder).catch(() => [])).map((name) => basename(name)).slice(0, DEVICES_MAX)

const text = async (file: string): Promise<string> => (await readFile(file, 'utf8').catch(() => '')).trim()
