/** The tools for boards that run MicroPython. Each call has the board to itself: its program stops meanwhile. */
import type { DeviceGuard } from '@sluice/hardware'
import type { Host, Tool } from '@sluice/sdk'
import type { Devices } from '../devices.ts'
import { deviceExec } from './device-exec.ts'
import { deviceReadCode } from './device-read-code.ts'
import { deviceWriteCode } from './device-write-code.ts'

export const deviceTools = (host: Pick<Host, 'clock'>, devices: Devices, guard: DeviceGuard): Tool[] => [
  deviceReadCode(host, devices, guard),
  deviceWriteCode(host, devices, guard),
  deviceExec(host, devices, guard),
]
