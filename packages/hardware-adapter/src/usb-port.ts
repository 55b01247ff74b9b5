/** Opens the bulk endpoints of a USB device. */
import { AppError } from '@sluice/sdk'

/** Identifies a connected USB device. */
export interface UsbAddress {
  readonly vendor: number
  readonly product: number
  /** The number of the bus without leading zeros. */
  readonly bus: string
  /** The address on the bus. */
  readonly address: number
}

/** The two bulk endpoints of a USB device. */
export interface UsbPort {
  send(bytes: Uint8Array): Promise<void>
  /** Receives one transfer of at most `bytesMax` bytes. Rejects when none arrives within a second. */
  receive(bytesMax: number): Promise<Uint8Array>
  close(): Promise<void>
}

/** A USB transfer that takes longer has failed; a normal one takes a millisecond or two. */
const TRANSFER_MS_MAX = 1000
/** The interface class of vendor-specific protocols. */
const VENDOR_CLASS = 0xff

/** The used part of a device of the package `usb`. */
export interface UsbDevice {
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

export interface UsbInterfaceDescriptor {
  readonly interfaceNumber: number
  readonly alternate: {
    readonly interfaceClass: number
    readonly endpoints: readonly { readonly endpointNumber: number; readonly direction: string; readonly type: string }[]
  }
}

/** Opens the device and claims its vendor-specific interface. Closes the device again when that fails. */
export async function claimUsb(device: UsbDevice): Promise<UsbPort> {
  await device.open()
  try {
    const { interfaceNumber, input, output } = bulkEndpoints(device.configuration?.interfaces ?? [])
    // The interface is not detached from its owner first: that could be another program in the middle of a transfer.
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

/**
 * Returns the endpoints of the first vendor-specific interface that has a pair of bulk endpoints, since their numbers differ between
 * makers of the same chip. Throws `unavailable` without such an interface.
 */
export function bulkEndpoints(interfaces: readonly UsbInterfaceDescriptor[]): { interfaceNumber: number; input: number; output: number } {
  for (const { interfaceNumber, alternate } of interfaces) {
    if (alternate.interfaceClass !== VENDOR_CLASS) continue
    const numberOf = (direction: string) =>
      alternate.endpoints.find((endpoint) => endpoint.type === 'bulk' && endpoint.direction === direction)?.endpointNumber
    const input = numberOf('in')
    const output = numberOf('out')
    if (input !== undefined && output !== undefined) return { interfaceNumber, input, output }
  }
  throw new AppError('unavailable', 'The adapter has no pair of bulk endpoints; it may be in another mode')
}

export const usbAddress = ({ vendorId, productId, bus, address }: UsbDevice): UsbAddress => ({
  vendor: vendorId,
  product: productId,
  bus: bus.replace(/^0+(?=.)/, ''),
  address,
})

export const isSameUsb = (one: UsbAddress, other: UsbAddress): boolean =>
  one.vendor === other.vendor && one.product === other.product && one.bus === other.bus && one.address === other.address
