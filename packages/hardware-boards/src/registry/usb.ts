/** A scan of the machine's USB devices and serial ports, and its implementation by serialport, for systems without /sys. */
import { isDevicePath } from '@sluice/hardware'
import type { UsbIdentity, UsbSeen } from '../devices.ts'
import { loadSerialLibrary, type NativePortInfo } from '../native.ts'

/** A serial port, and the USB device it belongs to. */
export interface SeenPort {
  readonly path: string
  /** Null when the port belongs to no USB device, or when the system does not say. */
  readonly usb: UsbIdentity | null
  /** The place where the device is plugged in, such as `1-1.2`; null when it is not known. */
  readonly location: string | null
}

export interface UsbScan {
  readonly ports: readonly SeenPort[]
  readonly usb: readonly UsbSeen[]
}

/** Scans the machine once. Changes nothing and opens no device. */
export type ScanUsb = () => Promise<UsbScan>

const PORTS_MAX = 64

export const scanSerialPorts: ScanUsb = async () => {
  const library = await loadSerialLibrary()
  const found = (await library.list()).filter(({ path }) => isDevicePath(path, 'serial')).slice(0, PORTS_MAX)
  const ports = found.map(seenPort)
  return {
    ports,
    usb: ports.flatMap(({ usb }) => (usb ? [{ vendor: usb.vendor, product: usb.product, name: usb.manufacturer ?? '' }] : [])),
  }
}

function seenPort({ path, vendorId, productId, serialNumber, manufacturer, locationId }: NativePortInfo): SeenPort {
  const usb = vendorId
    ? {
        vendor: fourDigits(vendorId),
        product: fourDigits(productId ?? ''),
        serialNumber: serialNumber || null,
        manufacturer: manufacturer || null,
      }
    : null
  return { path, usb, location: locationId || null }
}

const fourDigits = (id: string): string => id.toLowerCase().replace(/^0x/, '').padStart(4, '0')

/** Returns a text such as `2341:0043 Arduino Uno`. */
export const usbText = ({ vendor, product, name }: UsbSeen): string => `${vendor}:${product}${name && ` ${name}`}`
