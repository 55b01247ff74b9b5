/** `device_write_code` (§2.7 rule 4): replaces the program on a MicroPython board and starts it. */
import type { DeviceGuard } from '@sluice/hardware'
import { defineTool, type Host, sha256Hex } from '@sluice/sdk'
import * as v from 'valibot'
import { checkConnected, type Devices } from '../devices.ts'
import { MAIN_BYTES_MAX } from '../repl/limits.ts'
import { micropythonDevice } from './micropython-device.ts'
import { device } from './pins.ts'

const TOOL = 'device_write_code'

export const deviceWriteCode = ({ clock }: Pick<Host, 'clock'>, devices: Devices, guard: DeviceGuard) =>
  defineTool({
    name: TOOL,
    description:
      'Replaces main.py, the program a MicroPython board starts by itself, and resets the board so that it runs. The old program stays until the new one has arrived whole.',
    input: v.object({
      device,
      code: v.pipe(v.string(), v.minLength(1), v.maxLength(MAIN_BYTES_MAX), v.description('The whole program, in MicroPython')),
    }),
    risk: 'execute',
    async precheck({ device: asked }, { signal }) {
      checkConnected(await micropythonDevice(devices, asked, { tool: TOOL, signal }))
    },
    async run({ device: asked, code }, context) {
      const { signal } = context
      const { withRepl, writeMain } = await import('../when-needed.ts')
      const { alias } = await micropythonDevice(devices, asked, { tool: TOOL, signal })
      const write = { bytes: Buffer.byteLength(code), sha256: sha256Hex(code) }
      const { result } = await guard.use({ device: alias, tool: TOOL, context, write }, () =>
        devices.withPort(alias, signal, (port) =>
          withRepl(port, { name: alias, clock, signal, reset: true }, (repl) => writeMain(repl, code)),
        ),
      )
      return `Wrote main.py (${result.bytes} bytes, checked) on ${alias} and reset it: the program is running.`
    },
  })
