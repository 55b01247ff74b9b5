/** What serialport shows of USB, for systems without /sys. */
import { isDevicePath } from '@sluice/hardware'
import { loadSerialLibrary, type NativePortInfo } from '../native.ts'
import type { Look, SeenPort } from './usb.ts'

const PORTS_MAX = 64

export const lookAtPorts: Look = async () => {
  const library = await loadSerialLibrary()
  const ports = (await library.list()).filter(({ path }) => isDevicePath(path, 'serial')).slice(0, PORTS_MAX)
  const seen = ports.map(seenPort)
  return {
    ports: seen,
    usb: seen.flatMap(({ usb }) => (usb ? [{ vendor: usb.vendor, product: usb.product, name: usb.manufacturer ?? '' }] : [])),
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
