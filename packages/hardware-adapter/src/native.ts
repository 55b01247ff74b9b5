/** The optional native packages. Each is loaded on first use and offered through a small interface. */
import { checkDevicePath } from '@sluice/hardware'
import { installPackage, missingPackages } from '@sluice/kit'
import { AppError, errorText } from '@sluice/sdk'
import { claimUsb, isSameUsb, type UsbAddress, type UsbDevice, type UsbPort, usbAddress } from './usb-port.ts'

/** The report number of HID devices that have a single report. */
const REPORT_NUMBER = 0

/** A HID device. */
export interface HidPort {
  write(report: Uint8Array): Promise<void>
  /** Returns the next report, or an empty array when none arrives in time. */
  read(timeoutMs: number): Promise<Uint8Array>
  close(): Promise<void>
}

/** The used part of the kernel's I2C interface. Each call is one transaction; `address` is 7-bit. */
export interface KernelI2c {
  functions(): Promise<KernelI2cFunctions>
  receiveByte(address: number): Promise<number>
  readByte(address: number, register: number): Promise<number>
  readWord(address: number, register: number): Promise<number>
  /** Reads at most 32 bytes. */
  readBlock(address: number, register: number, length: number): Promise<Uint8Array>
  read(address: number, length: number): Promise<Uint8Array>
  sendByte(address: number, byte: number): Promise<void>
  writeByte(address: number, register: number, byte: number): Promise<void>
  /** Writes at most 32 bytes. */
  writeBlock(address: number, register: number, bytes: Uint8Array): Promise<void>
  write(address: number, bytes: Uint8Array): Promise<void>
  close(): Promise<void>
}

/** The kinds of transactions that a bus driver supports. */
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

export interface ListedDevice {
  readonly vendor: number
  readonly product: number
  /** Empty when the device has no serial number. */
  readonly serial: string
  /** The path for `openHid`; for USB devices `bus:address`. */
  readonly path: string
}

export interface Native {
  /** Loads a package. Throws `unavailable` with the install command when it is missing. */
  require(name: NativePackage): Promise<void>
  openHid(path: string): Promise<HidPort>
  openUsb(device: UsbAddress): Promise<UsbPort>
  /** Checks the path first and throws as `checkDevicePath` does. */
  openI2c(path: string): Promise<KernelI2c>
  /** Checks the path first and throws as `checkDevicePath` does. */
  openSpi(path: string, mode: 0 | 1 | 2 | 3): Promise<KernelSpi>
  listHid(): Promise<readonly ListedDevice[]>
  listUsb(): Promise<readonly (ListedDevice & UsbAddress)[]>
}

export type NativePackage = 'i2c-bus' | 'spi-device' | 'node-hid' | 'usb'

const COMPILER = 'Python 3, make and a C++ compiler'

/** How to install each package. */
export const NATIVE_FIX: Readonly<Record<NativePackage, string>> = {
  'i2c-bus': `${installPackage('i2c-bus')}; it is compiled, with ${COMPILER}`,
  'spi-device': `${installPackage('spi-device')}; it is compiled, with ${COMPILER}`,
  'node-hid': `${installPackage('node-hid')}; on Linux also libusb (Debian: apt-get install libusb-1.0-0)`,
  usb: installPackage('usb'),
}

/**
 * Returns why the feature can only simulate an adapter: none of the packages is installed. Returns undefined when at least one is,
 * because each adapter needs only one of them.
 */
export function missingNativePackages(): string | undefined {
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
    // The package loads its native part on first use, so use it here to find out whether it can be loaded.
    module.default.getHidapiVersion()
    return module
  })
/** The package's own types depend on browser types. */
const usb = () => load('usb', () => import('usb') as unknown as Promise<{ readonly default: UsbModule }>)

interface UsbModule {
  readonly usb: { getDevices(): Promise<readonly UsbDevice[]> }
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

  async openUsb(address) {
    const devices = await (await usb()).usb.getDevices()
    const device = devices.find((candidate) => isSameUsb(usbAddress(candidate), address))
    if (!device) throw new AppError('unavailable', 'The adapter was unplugged')
    return claimUsb(device)
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
    return devices.map((device) => ({
      ...usbAddress(device),
      serial: device.serialNumber ?? '',
      path: `${device.bus}:${device.address}`,
    }))
  },
}

/** Returns the numbers in a device path: `/dev/spidev0.1` → 0, 1. */
function numbersIn(path: string): [number, number] {
  const [bus = 0, device = 0] = (/(?<!\d)\d+(?:\.\d+)?$/.exec(path)?.[0] ?? '').split('.').map(Number)
  return [bus, device]
}
