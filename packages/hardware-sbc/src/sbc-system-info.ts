/** `sbc_system_info`: the board and how it is doing. It looks at no device, so no lease is taken. */
import { defineTool, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import type { Sbc } from './sbc.ts'
import type { SystemInfo } from './system-info.ts'

export const sbcSystemInfo = (sbc: Sbc, info: () => SystemInfo): Tool =>
  defineTool({
    name: 'sbc_system_info',
    description: 'Tells model, host name, IP address, memory and CPU temperature of this single-board computer, as JSON.',
    input: v.object({}),
    risk: 'read',
    available: () => sbc.board !== undefined,
    async run() {
      const { model, fullName } = await sbc.detect()
      const { hostname, ip, interface: on, wifiInterface, ramTotalMb, ramFreeMb, cpuCelsius } = info()
      return JSON.stringify({
        model: fullName,
        board: model.name,
        hostname,
        ip_address: ip,
        interface: on,
        wifi_interface: wifiInterface,
        ram_total_mb: ramTotalMb,
        ram_free_mb: ramFreeMb,
        cpu_temp_celsius: cpuCelsius,
        gpio_available: await sbc.hasGpio(),
        onboard_led_gpio: model.ledGpio,
      })
    },
  })
