/** What the registry needs of the machine it runs on. */
import { checkDevicePath } from '@sluice/hardware'
import type { Host } from '@sluice/sdk'
import type { Port } from '../devices.ts'
import { lookAtPorts } from './look-at-ports.ts'
import { lookAtSysfs } from './look-at-sysfs.ts'
import type { Look } from './usb.ts'
import { watchPorts } from './watch-ports.ts'

/** What a test puts in the place of this machine. */
export interface Machine {
  readonly look: Look
  /** Calls back when a port may have come or gone; resolves when `signal` aborts. */
  readonly watch: (onChange: () => void, signal: AbortSignal) => Promise<void>
  /** Throws as `checkDevicePath`. */
  readonly check: (path: string) => Promise<void>
  /** Throws `unavailable` when it cannot be opened. */
  readonly open: (path: string, baud: number, signal: AbortSignal) => Promise<Port>
}

export const thisMachine = (host: Host): Machine => ({
  look: process.platform === 'linux' ? lookAtSysfs() : lookAtPorts,
  watch: (onChange, signal) => watchPorts(host.clock, onChange, signal),
  check: (path) => checkDevicePath(path, 'serial'),
  async open(path, baud, signal) {
    const { openSerialPort } = await import('../when-needed.ts')
    return openSerialPort({ path, baud, clock: host.clock }, signal)
  },
})

/** Through the gate for paths, whoever gave them. */
export async function openChecked(machine: Machine, path: string, baud: number, signal: AbortSignal): Promise<Port> {
  await machine.check(path)
  return machine.open(path, baud, signal)
}
