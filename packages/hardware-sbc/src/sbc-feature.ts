/** The feature around whatever machine it is given. */
import { createDeviceGuard, missingGpioPackage, peripheralKeys } from '@sluice/hardware'
import { defineFeature, type Feature } from '@sluice/sdk'
import * as v from 'valibot'
import { boardPrompt } from './board-prompt.ts'
import { checkSbc } from './check-sbc.ts'
import { gpioTools } from './gpio-tools.ts'
import { createSbc, nativeGpio, type Outside } from './sbc.ts'
import { sbcSystemInfo } from './sbc-system-info.ts'
import { createSystemInfo } from './system-info.ts'

const LIMITS = {
  lease_secs: v.getDefault(peripheralKeys.lease_secs),
  pin_reservation_secs: v.getDefault(peripheralKeys.pin_reservation_secs),
}

/** As its own tools call it. */
const DEVICE = 'sbc0'

export const sbcFeature = (outside: Outside): Feature =>
  defineFeature({
    id: 'hardware-sbc',
    build(host) {
      const sbc = createSbc(host, outside)
      const info = createSystemInfo(outside.root, host.clock)
      const guard = createDeviceGuard(host, LIMITS)
      return {
        tools: [...gpioTools({ sbc, guard, clock: host.clock }), sbcSystemInfo(sbc, info)],
        services: {
          nativeGpio: {
            ...nativeGpio(sbc),
            get isThere() {
              return sbc.board !== undefined
            },
            use: (use, work) => guard.use({ ...use, device: DEVICE }, work),
          },
        },
        prompt: () => (sbc.board ? boardPrompt(sbc.board, info()) : ''),
        lacks: missingGpioPackage,
        check: () => checkSbc(outside),
        async register() {
          void sbc.start()
        },
        close: () => sbc.close(),
      }
    },
  })
