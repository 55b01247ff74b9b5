/** The machine that the daemon runs on. */
import { checkDevicePath, scannedPath } from '@sluice/hardware'
import type { Host } from '@sluice/sdk'
import type { Machine } from './machine.ts'
import { scanSysfs } from './scan-sysfs.ts'
import { scanSerialPorts } from './usb.ts'
import { watchPorts } from './watch-ports.ts'

export const thisMachine = (host: Host): Machine => ({
  scan: process.platform === 'linux' ? scanSysfs() : scanSerialPorts,
  watch: (onChange, signal) => watchPorts(host.clock, onChange, signal),
  scannedPath,
  check: (path) => checkDevicePath(path, 'serial'),
  async open(path, baud, signal) {
    const { openSerialPort } = await import('../on-demand.ts')
    return openSerialPort(path, baud, host.clock, signal)
  },
})
