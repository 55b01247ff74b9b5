/** Which USB adapters are connected, without loading anything native where the kernel tells it in files. */
import { readdir, readFile, readlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { CH341A_ID, type FoundAdapter, MCP2221_ID, type UsbId } from './found-adapter.ts'
import type { ListedDevice, Native, UsbName } from './native.ts'

/** More than fit on a bus are not looked at. */
const DEVICES_MAX = 256

export interface UsbPlaces {
  readonly platform: NodeJS.Platform
  /** Where the kernel's device files are: `/sys`. */
  readonly sys: string
}

export const thisMachine: UsbPlaces = { platform: process.platform, sys: '/sys' }

/** Sorted by place. Rejects with `unavailable` where a native package is needed to look and is missing. */
export async function findUsbAdapters(native: Native, { platform, sys }: UsbPlaces): Promise<readonly FoundAdapter[]> {
  const found = platform === 'linux' ? [...(await hidrawDevices(sys)), ...(await usbDevices(sys))] : await listed(native)
  return found.toSorted((one, other) => one.place.localeCompare(other.place, 'en', { numeric: true }))
}

async function hidrawDevices(sys: string): Promise<FoundAdapter[]> {
  const found: FoundAdapter[] = []
  for (const name of await entries(join(sys, 'class/hidraw'))) {
    const facts = await text(join(sys, 'class/hidraw', name, 'device/uevent'))
    const lines = facts.split('\n')
    const value = (key: string) => lines.find((line) => line.startsWith(`${key}=`))?.slice(key.length + 1) ?? ''
    const [, vendor, product] = value('HID_ID').split(':')
    if (!isDevice(MCP2221_ID, vendor, product)) continue
    const instance = basename(await readlink(join(sys, 'class/hidraw', name, 'device')).catch(() => ''))
    // Without a place of its own the device is told by its number.
    found.push({ kind: 'mcp2221', serial: value('HID_UNIQ'), place: value('HID_PHYS') || name, path: `/dev/${name}`, instance })
  }
  return found
}

async function usbDevices(sys: string): Promise<FoundAdapter[]> {
  const folder = join(sys, 'bus/usb/devices')
  const found: FoundAdapter[] = []
  // With a colon: an interface of a device.
  for (const place of (await entries(folder)).filter((name) => !name.includes(':'))) {
    const fact = (name: string) => text(join(folder, place, name))
    if (!isDevice(CH341A_ID, await fact('idVendor'), await fact('idProduct'))) continue
    const [bus, address] = [await fact('busnum'), await fact('devnum')]
    const path = `/dev/bus/usb/${bus.padStart(3, '0')}/${address.padStart(3, '0')}`
    found.push({ kind: 'ch341a', serial: await fact('serial'), place, path, usb: { bus, address: Number(address) } })
  }
  return found
}

export interface TakenAdapter {
  readonly name: string
  /** As `modprobe` knows it. */
  readonly driver: string
  /** What the driver makes of it. */
  readonly key: 'i2c' | 'spi'
}

const DRIVERS = [
  { folder: 'bus/hid/drivers/mcp2221', device: /^[\dA-F]{4}:04D8:00DD\./i, name: 'MCP2221', driver: 'hid_mcp2221', key: 'i2c' },
  { folder: 'bus/usb/drivers/spi-ch341', device: /^\d+-[\d.]+:/, name: 'CH341A', driver: 'spi_ch341', key: 'spi' },
] as const

/** The adapters that a driver of the kernel has for itself. */
export async function takenByKernel(sys: string): Promise<readonly TakenAdapter[]> {
  const taken: TakenAdapter[] = []
  for (const { folder, device, ...adapter } of DRIVERS) {
    if ((await entries(join(sys, folder))).some((name) => device.test(name))) taken.push(adapter)
  }
  return taken
}

async function listed(native: Native): Promise<FoundAdapter[]> {
  const isA =
    ({ vendor, product }: UsbId) =>
    (device: ListedDevice) =>
      device.vendor === vendor && device.product === product
  const hid = (await native.listHid()).filter(isA(MCP2221_ID))
  const usb: readonly (ListedDevice & UsbName)[] = (await native.listUsb()).filter(isA(CH341A_ID))
  return [
    ...hid.map(({ serial, path }): FoundAdapter => ({ kind: 'mcp2221', serial, place: path, path })),
    ...usb.map(({ serial, path, bus, address }): FoundAdapter => ({ kind: 'ch341a', serial, place: path, path, usb: { bus, address } })),
  ]
}

const isDevice = ({ vendor, product }: UsbId, vendorHex = '', productHex = ''): boolean =>
  Number.parseInt(vendorHex, 16) === vendor && Number.parseInt(productHex, 16) === product

const entries = async (folder: string): Promise<string[]> =>
  (await readdir(folder).catch(() => [])).map((name) => basename(name)).slice(0, DEVICES_MAX)

const text = async (file: string): Promise<string> => (await readFile(file, 'utf8').catch(() => '')).trim()
