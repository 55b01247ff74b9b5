/** Where an adapter listens and speaks, from its own description: endpoint numbers differ between makers of the same chip. */
import { AppError } from '@sluice/sdk'

export interface UsbInterfaceDescriptor {
  readonly interfaceNumber: number
  readonly alternate: {
    readonly interfaceClass: number
    readonly endpoints: readonly { readonly endpointNumber: number; readonly direction: string; readonly type: string }[]
  }
}

const VENDOR_CLASS = 0xff

/** Of the first interface of the vendor's own kind that has both; throws `unavailable` if there is none. */
export function bulkEndpoints(interfaces: readonly UsbInterfaceDescriptor[]): { interfaceNumber: number; input: number; output: number } {
  for (const { interfaceNumber, alternate } of interfaces) {
    if (alternate.interfaceClass !== VENDOR_CLASS) continue
    const numberOf = (direction: string) =>
      alternate.endpoints.find((endpoint) => endpoint.type === 'bulk' && endpoint.direction === direction)?.endpointNumber
    const input = numberOf('in')
    const output = numberOf('out')
    if (input !== undefined && output !== undefined) return { interfaceNumber, input, output }
  }
  throw new AppError('unavailable', 'The adapter describes no pair of bulk endpoints; it may be in another mode')
}
