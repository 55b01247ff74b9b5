/** The one door to the native packages, which are optional: each is loaded at its first use and shown as a small port. */
import { checkDevicePath } from '@sluice/hardware'
import { installPackage, missingPackages } from '@sluice/kit'
import { AppError, errorText } from '@sluice/sdk'
import { bulkEndpoints, type UsbInterfaceDescriptor } from './bulk-endpoints.ts'

/** Beyond it a USB transfer has failed; a real one takes a millisecond or two. */
const TRANSFER_MS_MAX = 1000
/** A HID report's number where a device has but one. */
const REPORT_NUMBER = 0

/** A HID device, report by report. */
export interface HidPort {
  write(report: Uint8Array): Promise<void>
  /** The next report; empty if none came in time. */
  read(timeoutMs: number): Promise<Uint8Array>
  close(): Promise<void>
}

/** The two bulk endpoints of a vendor's interface. */
export interface UsbPort {
  send(bytes: Uint8Array): Promise<void>
  /** One transfer, of at most that many bytes; rejects if none comes in time. */
  receive(bytesMax: number): Promise<Uint8Array>
  close(): Promise<void>
}

/** What the kernel's I2C interface offers of it; `address` is 7-bit. */
export interface KernelI2c {
  functions(): Promise<KernelI2cFunctions>
  receiveByte(address: number): Promise<number>
  readByte(address: number, register: number): Promise<number>
  readWord(address: number, register: number): Promise<number>
  /** At most 32 bytes. */
  readBlock(address: number, register: number, length: number): Promise<Uint8Array>
  read(address: number, length: number): Promise<Uint8Array>
  sendByte(address: number, byte: number): Promise<void>
  writeByte(address: number, register: number, byte: number): Promise<void>
  /** At most 32 bytes. */
  writeBlock(address: number, register: number, bytes: Uint8Array): Promise<void>
  write(address: number, bytes: Uint8Array): Promise<void>
  close(): Promise<void>
}

export interface KernelI2cFunctions {
  /** Plain transfers of any length. */
  readonly i2c: boolean
  readonly smbusReadI2cBlock: boolean
  readonly smbusWriteI2cBlock: boolean
}

export interface KernelSpi {
  transfer(bytes: Uint8Array, speedHz: number): Promise<Uint8Array>
  close(): Promise<void>
}

/** A USB device as its operating system names it. */
export interface UsbName {
  readonly vendor: number
  readonly product: number
  /** Which bus, without leading zeros, and the address on it: they tell two of a kind apart. */
  readonly bus: string
  readonly address: number
}

export interface ListedDevice {
  readonly vendor: number
  readonly product: number
  readonly serial: string
  /** Where it is now. */
  readonly path: string
}

export interface Native {
  /** Rejects with `unavailable` where the package is missing, naming what to install. */
  require(name: NativePackage): Promise<void>
  openHid(path: string): Promise<HidPort>
  openUsb(device: UsbName): Promise<UsbPort>
  /** Rejects as `checkDevicePath` does. */
  openI2c(path: string): Promise<KernelI2c>
  openSpi(path: string, mode: 0 | 1 | 2 | 3): Promise<KernelSpi>
  listHid(): Promise<readonly ListedDevice[]>
  listUsb(): Promise<readonly (ListedDevice & UsbName)[]>
}

export type NativePackage = 'i2c-bus' | 'spi-device' | 'node-hid' | 'usb'

const COMPILER = 'Python 3, make and a C++ compiler'

/** What mends that a package cannot be loaded. */
export const NATIVE_FIX: Readonly<Record<NativePackage, string>> = {
  'i2c-bus': `${installPackage('i2c-bus')}; it is compiled, with ${COMPILER}`,
  'spi-device': `${installPackage('spi-device')}; it is compiled, with ${COMPILER}`,
  'node-hid': `${installPackage('node-hid')}; on Linux also libusb (Debian: apt-get install libusb-1.0-0)`,
  usb: installPackage('usb'),
}

/** All of them are optional; the feature can do nothing but simulate where none is there. */
export function lacksNative(): string | undefined {
  const names = Object.keys(NATIVE_FIX)
  return names.every((name) => missingPackages([name], import.meta.url) !== undefined) ? missingPackages(names, import.meta.url) : undefined
}

async function load<Module>(name: NativePackage, importing: () => Promise<{ readonly default: Module }>): Promise<Module> {
  try {
    return (await importing()).default
  } catch (cause) {
    const [why] = errorText(cause).split('\n')
    throw new AppError('unavailable', `The package ${name} cannot be loaded (${why}); ${NATIVE_FIX[name]}`, { cause })
  }
}

const i2cBus = () => load('i2c-bus', () => import('i2c-bus'))
const spiDevice = () => load('spi-device', () => import('spi-device'))
const nodeHid = () =>
  load('node-hid', async () => {
    const module = await import('node-hid')
    // What is native of it is loaded with its first use only.
    module.default.getHidapiVersion()
    return module
  })
/** Its own types need the browser's. */
const usb = () => load('usb', () => import('usb') as unknown as Promise<{ readonly default: UsbModule }>)

interface UsbModule {
  readonly usb: { getDevices(): Promise<readonly UsbDevice[]> }
}

interface UsbDevice {
  readonly vendorId: number
  readonly productId: number
  readonly serialNumber: string | null
  readonly bus: string
  readonly address: number
  readonly configuration: { readonly interfaces: readonly UsbInterfaceDescriptor[] } | null
  open(): Promise<void>
  close(): Promise<void>
  claimInterface(number: number): Promise<void>
  releaseInterface(number: number): Promise<void>
  transferIn(endpoint: number, length: number, timeoutMs: number): Promise<{ readonly data?: DataView }>
  transferOut(endpoint: number, bytes: Uint8Array, timeoutMs: number): Promise<{ readonly bytesWritten: number }>
}

export const nativePackages: Native = {
  async require(name) {
    await { 'i2c-bus': i2cBus, 'spi-device': spiDevice, 'node-hid': nodeHid, usb }[name]()
  },

  async openHid(path) {
    const device = await (await nodeHid()).HIDAsync.open(path)
    return {
      write: async (report) => void (await device.write(Buffer.from([REPORT_NUMBER, ...report]))),
      read: async (timeoutMs) => (await device.read(timeoutMs)) ?? new Uint8Array(),
      close: () => device.close(),
    }
  },

  async openUsb(name) {
    const devices = await (await usb()).usb.getDevices()
    const device = devices.find((candidate) => sameDevice(usbName(candidate), name))
    if (!device) throw new AppError('unavailable', 'The adapter is no longer connected')
    return claimed(device)
  },

  async openI2c(path) {
    await checkDevicePath(path, 'i2c')
    const bus = await (await i2cBus()).openPromisified(numbersIn(path)[0])
    return {
      functions: () => bus.i2cFuncs(),
      receiveByte: (address) => bus.receiveByte(address),
      readByte: (address, register) => bus.readByte(address, register),
      readWord: (address, register) => bus.readWord(address, register),
      async readBlock(address, register, length) {
        const { buffer, bytesRead } = await bus.readI2cBlock(address, register, length, Buffer.alloc(length))
        return buffer.subarray(0, bytesRead)
      },
      async read(address, length) {
        const { buffer, bytesRead } = await bus.i2cRead(address, length, Buffer.alloc(length))
        return buffer.subarray(0, bytesRead)
      },
      sendByte: (address, byte) => bus.sendByte(address, byte),
      writeByte: (address, register, byte) => bus.writeByte(address, register, byte),
      writeBlock: async (address, register, bytes) => void (await bus.writeI2cBlock(address, register, bytes.length, Buffer.from(bytes))),
      write: async (address, bytes) => void (await bus.i2cWrite(address, bytes.length, Buffer.from(bytes))),
      close: () => bus.close(),
    }
  },

  async openSpi(path, mode) {
    await checkDevicePath(path, 'spi')
    const spi = await spiDevice()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const device = spi.open(...numbersIn(path), { mode }, (error) => (error ? reject(error) : resolve()))
    await promise
    return {
      async transfer(bytes, speedHz) {
        const receiveBuffer = Buffer.alloc(bytes.length)
        const message = { sendBuffer: Buffer.from(bytes), receiveBuffer, byteLength: bytes.length, speedHz }
        await new Promise<void>((done, failed) => device.transfer([message], (error) => (error ? failed(error) : done())))
        return receiveBuffer
      },
      close: () => new Promise<void>((done, failed) => device.close((error) => (error ? failed(error) : done()))),
    }
  },

  async listHid() {
    const devices = await (await nodeHid()).devicesAsync()
    return devices.flatMap(({ vendorId, productId, serialNumber = '', path }) =>
      path === undefined ? [] : [{ vendor: vendorId, product: productId, serial: serialNumber, path }],
    )
  },

  async listUsb() {
    const devices = await (await usb()).usb.getDevices()
    return devices.map((device) => {
      const name = usbName(device)
      return { ...name, serial: device.serialNumber ?? '', path: `${device.bus}:${device.address}` }
    })
  },
}

/** `/dev/spidev0.1` → 0, 1. */
function numbersIn(path: string): [number, number] {
  const [bus = 0, device = 0] = (/(?<!\d)\d+(?:\.\d+)?$/.exec(path)?.[0] ?? '').split('.').map(Number)
  return [bus, device]
}

const usbName = ({ vendorId, productId, bus, address }: UsbDevice): UsbName => ({
  vendor: vendorId,
  product: productId,
  bus: bus.replace(/^0+(?=.)/, ''),
  address,
})

const sameDevice = (one: UsbName, other: UsbName): boolean =>
  one.vendor === other.vendor && one.product === other.product && one.bus === other.bus && one.address === other.address

async function claimed(device: UsbDevice): Promise<UsbPort> {
  await device.open()
  try {
    const { interfaceNumber, input, output } = bulkEndpoints(device.configuration?.interfaces ?? [])
    // Nobody is driven out before: that would take it from another program too, in the middle of what it does.
    await device.claimInterface(interfaceNumber)
    return {
      send: async (bytes) => void (await device.transferOut(output, bytes, TRANSFER_MS_MAX)),
      async receive(bytesMax) {
        const { data } = await device.transferIn(input, bytesMax, TRANSFER_MS_MAX)
        return data ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array()
      },
      async close() {
        await device.releaseInterface(interfaceNumber).catch(() => undefined)
        await device.close()
      },
    }
  } catch (error) {
    await device.close().catch(() => undefined)
    throw error
  }
}
