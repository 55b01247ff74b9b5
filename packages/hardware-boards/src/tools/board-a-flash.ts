/** `board_a_flash`: writes a UF2 image, such as MicroPython itself, to a board_a. See docs/contract.md#hardware. */
import type { DeviceGuard } from '@sluice/hardware'
import { defineTool, type Host } from '@sluice/sdk'
import * as v from 'valibot'
import type { Devices } from '../devices.ts'
import type { Mounts } from '../flash/boot-volume.ts'
import { device } from './gpio.ts'

const PATH_CHARS_MAX = 1024

export const boardAFlash = (host: Host, devices: Devices, guard: DeviceGuard, mounts?: Mounts) =>
  defineTool({
    name: 'board_a_flash',
    description:
      'Writes a UF2 image, such as MicroPython, to a board_a, over the present firmware. A board that runs MicroPython is rebooted into its boot loader; any other board has to be plugged in with its BOOTSEL button held.',
    input: v.strictObject({
      confirm: v.pipe(v.boolean(), v.description('Must be true: the present contents of the board are lost')),
      device,
      image: v.optional(
        v.pipe(
          v.string(),
          v.minLength(1),
          v.maxLength(PATH_CHARS_MAX),
          v.description('A .uf2 file in the workspace; default: the image that the operator has stored'),
        ),
      ),
    }),
    risk: 'execute',
    decider: 'asker',
    egress: false,
    untrusted: false,
    alwaysAsks: true,
    async precheck({ device: asked }, { signal }) {
      const { checkBoardA } = await import('../on-demand.ts')
      await checkBoardA(devices, mounts, asked, signal)
    },
    async run(asked, context) {
      const { flashBoardA } = await import('../on-demand.ts')
      return flashBoardA({ host, devices, guard, mounts }, asked, context)
    },
  })
