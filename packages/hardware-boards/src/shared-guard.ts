/** The guard of this feature's devices, but for the pins of this machine: those have one for all features that reach them. */
import type { DeviceGuard } from '@sluice/hardware'
import type { Host } from '@sluice/sdk'
import type { Devices } from './devices.ts'

export const sharedGuard = (host: Pick<Host, 'service'>, devices: Pick<Devices, 'all'>, own: DeviceGuard): DeviceGuard => ({
  use(use, work) {
    const isNative = devices.all().some(({ alias, transport }) => alias === use.device && transport === 'native')
    const { device: _, ...pins } = use
    return (isNative && host.service('nativeGpio')?.use(pins, work)) || own.use(use, work)
  },
})
