/** An adapter as it was found, before anything is opened. */

export type AdapterKind = 'mcp2221' | 'ch341a' | 'linux' | 'sim'

export interface FoundAdapter {
  readonly kind: AdapterKind
  /** Empty where it has none. */
  readonly serial: string
  /** Where it is connected; of two of a kind never the same. */
  readonly place: string
  /** What is opened: `/dev/hidraw0`. */
  readonly path: string
  /** Another one each time it is plugged in, where the system tells; `path` may stay the same. */
  readonly instance?: string
  /** Of a USB device that is no HID device. */
  readonly usb?: { readonly bus: string; readonly address: number }
}

export interface UsbId {
  readonly kind: AdapterKind
  readonly vendor: number
  readonly product: number
}

export const MCP2221_ID = { kind: 'mcp2221', vendor: 0x04d8, product: 0x00dd } as const satisfies UsbId
export const CH341A_ID = { kind: 'ch341a', vendor: 0x1a86, product: 0x5512 } as const satisfies UsbId

/** `04d8`. */
export const usbDigits = (id: number): string => id.toString(16).padStart(4, '0')
