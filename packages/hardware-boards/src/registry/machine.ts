/** The functions of the machine that the registry uses. Tests replace them. */
import { checkDevicePath } from '@sluice/hardware'
import type { Host } from '@sluice/sdk'
import type { Port } from '../devices.ts'
import { scanSysfs } from './scan-sysfs.ts'
import { type ScanUsb, scanSerialPorts } from './usb.ts'
import { watchPorts } from './watch-ports.ts'

export interface Machine {
  readonly scan: ScanUsb
  /** Calls `onChange` when a port may have come or gone. Resolves when `signal` aborts. */
  readonly watch: (onChange: () => void, signal: AbortSignal) => Promise<void>
  /** Throws as `checkDevicePath`. */
  readonly check: (path: string) => Promise<void>
  /** Throws `unavailable` when the port cannot be opened. */
  readonly open: (path: string, baud: number, signal: AbortSignal) => Promise<Port>
}

export const thisMachine = (host: Host): Machine => ({
  scan: process.platform === 'linux' ? scanSysfs() : scanSerialPorts,
  watch: (onChange, signal) => watchPorts(host.clock, onChange, signal),
  check: (path) => checkDevicePath(path, 'serial'),
  async open(path, baud, signal) {
    const { openSerialPort } = await import('../on-demand.ts')
    return openSerialPort(path, baud, host.clock, signal)
  },
})

/** Opens a port after checking its path, which may come from the configuration or from a scan. */
export async function openChecked(machine: Machine, path: string, baud: number, signal: AbortSignal): Promise<Port> {
  await machine.check(path)
  return machine.open(path, baud, signal)
}
