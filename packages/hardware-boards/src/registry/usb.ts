/** What is plugged into this machine's USB, and which serial ports it has. */
import type { UsbIdentity, UsbSeen } from '../devices.ts'

/** A serial port, and the device it belongs to. */
export interface SeenPort {
  readonly path: string
  /** Null: it is no USB device's, or the system does not tell. */
  readonly usb: UsbIdentity | null
  /** Where it is plugged in, such as `1-1.2`; null: not known. */
  readonly location: string | null
}

export interface Seen {
  readonly ports: readonly SeenPort[]
  readonly usb: readonly UsbSeen[]
}

/** One look; changes nothing and opens nothing. */
export type Look = () => Promise<Seen>

/** `2341:0043 Arduino Uno` */
export const usbText = ({ vendor, product, name }: UsbSeen): string => `${vendor}:${product}${name && ` ${name}`}`
