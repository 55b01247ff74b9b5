/** Loads serialport, a native module, when the first port is listed or opened. No other file imports it. */
import { installPackage, missingPackages } from '@sluice/kit'
import { AppError, errorText } from '@sluice/sdk'

/** The members of a serialport port, which is a stream, that this package uses. */
export interface NativePort {
  open(callback: (error: Error | null) => void): void
  write(bytes: Uint8Array, callback: (error: Error | null | undefined) => void): boolean
  set(lines: { dtr?: boolean; rts?: boolean }, callback: (error: Error | null) => void): void
  close(callback: (error: Error | null) => void): void
  destroy(): void
  readonly isOpen: boolean
  on(event: 'data', callback: (bytes: Uint8Array) => void): this
  on(event: 'error' | 'close', callback: (error: Error | null) => void): this
}

export interface NativePortInfo {
  readonly path: string
  readonly vendorId?: string | undefined
  readonly productId?: string | undefined
  readonly serialNumber?: string | undefined
  readonly manufacturer?: string | undefined
  readonly locationId?: string | undefined
}

export interface SerialLibrary {
  list(): Promise<readonly NativePortInfo[]>
  port(options: { readonly path: string; readonly baudRate: number }): NativePort
}

export const SERIAL_FIX = installPackage('serialport')

/** Returns why serial ports cannot be used when the package is missing, without loading it. */
export const missingSerial = (): string | undefined => missingPackages(['serialport'], import.meta.url)

/** Throws `unavailable` when the module, or its binary for this platform, is missing. */
export async function loadSerialLibrary(module = () => import('serialport')): Promise<SerialLibrary> {
  try {
    const { SerialPort } = await module()
    return {
      list: () => SerialPort.list(),
      // Without `hupcl`, closing leaves DTR unchanged, so that the next open does not reset the boards that react to its edge.
      port: (options) => new SerialPort({ ...options, autoOpen: false, hupcl: false }) as unknown as NativePort,
    }
  } catch (cause) {
    throw new AppError('unavailable', `Serial ports need the package serialport (${errorText(cause)}); ${SERIAL_FIX}`, { cause })
  }
}
