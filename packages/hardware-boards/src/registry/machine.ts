/** The functions of the machine that the registry uses. Tests replace them. */
import type { Port } from '../devices.ts'
import type { ScanUsb } from './usb.ts'

export interface Machine {
  readonly scan: ScanUsb
  /** Calls `onChange` when a port may have come or gone. Resolves when `signal` aborts. */
  readonly watch: (onChange: () => void, signal: AbortSignal) => Promise<void>
  /** As `scannedPath`. */
  readonly scannedPath: (path: string) => Promise<string>
  /** Throws as `checkDevicePath`. */
  readonly check: (path: string) => Promise<void>
  /** Throws `unavailable` when the port cannot be opened. */
  readonly open: (path: string, baud: number, signal: AbortSignal) => Promise<Port>
}

/** Opens a port after checking its path, which may come from the configuration or from a scan. */
export async function openChecked(machine: Machine, path: string, baud: number, signal: AbortSignal): Promise<Port> {
  await machine.check(path)
  return machine.open(path, baud, signal)
}
