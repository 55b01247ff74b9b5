/** The feature for a given machine. Tests pass a machine of their own. */
import { createDeviceGuard, missingGpioPackage, peripheralKeys } from '@sluice/hardware'
import { defineFeature, type Feature } from '@sluice/sdk'
import * as v from 'valibot'
import { checkSbc } from './check-sbc.ts'
import { boardPrompt } from './describe-board.ts'
import { DEVICE, gpioTools } from './gpio-tools.ts'
import { type Machine, Sbc } from './sbc.ts'
import { createSystemInfo, sbcSystemInfo } from './system-info.ts'

/** The defaults of `[peripherals]`, since this feature has no section. */
const LIMITS = {
  lease_secs: v.getDefault(peripheralKeys.lease_secs),
  pin_reservation_secs: v.getDefault(peripheralKeys.pin_reservation_secs),
}

export const sbcFeature = (machine: Machine): Feature =>
  defineFeature({
    id: 'hardware-sbc',
    build(host) {
      const sbc = new Sbc(host, machine)
      const info = createSystemInfo(machine.root, host.clock)
      const guard = createDeviceGuard(host, LIMITS)
      return {
        tools: [...gpioTools({ sbc, guard, clock: host.clock }), sbcSystemInfo(sbc, info)],
        services: {
          nativeGpio: {
            read: async (pin) => (await sbc.read(pin)).level,
            write: async (pin, value) => void (await sbc.write(pin, value)),
            get isThere() {
              return sbc.board !== undefined
            },
            use: (use, work) => guard.use({ ...use, device: DEVICE }, work),
          },
        },
        hardware: {
          async boards() {
            const { board } = sbc
            if (!board) return []
            const { holders, pins } = await guard.held()
            return [
              {
                name: DEVICE,
                title: board.fullName,
                transport: 'native',
                path: null,
                connected: true,
                holder: holders.get(DEVICE) ?? null,
                pins: pins.get(DEVICE) ?? [],
              },
            ]
          },
        },
        prompt: () => (sbc.board ? boardPrompt(sbc.board, info()) : ''),
        missingRequirement: missingGpioPackage,
        check: () => checkSbc(machine),
        async register() {
          void sbc.start()
        },
        close: () => sbc.close(),
      }
    },
  })
