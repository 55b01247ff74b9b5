/** `device_read_code` (§2.7 rule 4): the program on a MicroPython board. */
import type { DeviceGuard } from '@sluice/hardware'
import { defineTool, type Host } from '@sluice/sdk'
import * as v from 'valibot'
import { checkConnected, type Devices } from '../devices.ts'
import { micropythonDevice } from './micropython-device.ts'
import { device } from './pins.ts'

const TOOL = 'device_read_code'

export const deviceReadCode = ({ clock }: Pick<Host, 'clock'>, devices: Devices, guard: DeviceGuard) =>
  defineTool({
    name: TOOL,
    description: 'Reads main.py, the program a MicroPython board starts by itself. It is interrupted for that and started anew afterwards.',
    input: v.object({ device }),
    // What it drives is left to itself meanwhile, and begins anew.
    risk: 'execute',
    async precheck({ device: asked }, { signal }) {
      checkConnected(await micropythonDevice(devices, asked, { tool: TOOL, signal }))
    },
    async run({ device: asked }, context) {
      const { signal } = context
      const { withRepl, readMain } = await import('../when-needed.ts')
      const { alias } = await micropythonDevice(devices, asked, { tool: TOOL, signal })
      const { result: code, restarted } = await guard.use({ device: alias, tool: TOOL, context }, () =>
        devices.withPort(alias, signal, (port) => withRepl(port, { name: alias, clock, signal }, readMain)),
      )
      if (code === undefined) return `There is no program yet on ${alias}: it has no main.py.`
      context.report?.({ data: code })
      if (code === '') return `main.py on ${alias} is empty.`
      const note = restarted ? '\n\nIt was running, and has been started anew.' : ''
      return `main.py on ${alias}:\n\n${fenced(code)}${note}`
    },
  })

/** With a fence that the code itself does not have. */
function fenced(code: string): string {
  const longest = Math.max(2, ...[...code.matchAll(/`{3,}/g)].map(([fence]) => fence.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}python\n${code.replace(/\n?$/, '\n')}${fence}`
}
