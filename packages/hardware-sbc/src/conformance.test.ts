import { fakeGpio } from '@sluice/hardware/testing/fake-gpio'
import { testClock } from '@sluice/testkit/clock'
import { toolConformance } from '@sluice/testkit/tool'
import { afterAll } from 'vitest'
import { sbcFeature } from './sbc-feature.ts'
import { FAKE_LED, fakeRoot } from './testing/fake-board.ts'

const { root, remove } = fakeRoot({ 'proc/device-tree/model': 'Raspberry Pi 5 Model B Rev 1.0\0', ...FAKE_LED })
afterAll(remove)

toolConformance({
  feature: sbcFeature({ root, openGpio: async () => fakeGpio([{ path: '/dev/gpiochip4', label: 'pinctrl-rp1', lines: 54 }]) }),
  host: () => ({ clock: { ...testClock(), sleep: async () => {} }, services: { audit: async () => {} } }),
  examples: [
    { tool: 'gpio_sbc_write', input: { pin: 17, value: 1 } },
    { tool: 'gpio_sbc_read', input: { pin: 22 } },
    { tool: 'gpio_sbc_blink', input: { pin: 'led' } },
    { tool: 'sbc_system_info', input: {} },
  ],
})
