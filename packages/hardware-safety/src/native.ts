/** Loads serialport, a native module, when the safety process opens the robot's drive. No other file imports it. */
import { installPackage } from '@sluice/kit'
import { AppError, errorText } from '@sluice/sdk'

/** The members of a serialport port that this package uses. */
export interface NativePort {
  open(callback: (error: Error | null) => void): void
  write(text: string, callback: (error: Error | null | undefined) => void): boolean
  close(callback: (error: Error | null) => void): void
  resume(): unknown
  readonly isOpen: boolean
  on(event: 'error' | 'close', callback: (error: Error | null) => void): unknown
}

export type OpenPort = (options: { readonly path: string; readonly baudRate: number }) => NativePort

/** Throws `unavailable` when the module, or its binary for this platform, is missing. */
export async function loadSerialPort(): Promise<OpenPort> {
  try {
    const { SerialPort } = await import('serialport')
    return (options) => new SerialPort({ ...options, autoOpen: false, hupcl: false }) as unknown as NativePort
  } catch (cause) {
    throw new AppError(
      'unavailable',
      `A drive on a serial port needs the package serialport (${errorText(cause)}); ${installPackage('serialport')}`,
      { cause },
    )
  }
}
