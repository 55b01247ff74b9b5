/** `device_exec` (§2.7 rule 4): runs code on a MicroPython board, once, without keeping it there. */
import type { DeviceGuard } from '@sluice/hardware'
import { defineTool, type Host, sha256Hex } from '@sluice/sdk'
import * as v from 'valibot'
import { checkConnected, type Devices } from '../devices.ts'
import { CODE_BYTES_MAX, RUN_MS } from '../repl/limits.ts'
import type { Ran } from '../repl/repl.ts'
import { micropythonDevice } from './micropython-device.ts'
import { device } from './pins.ts'

const TOOL = 'device_exec'
/** Of the code in the audit log, beside its hash. */
const CODE_CHARS_KEPT = 512

export const deviceExec = ({ clock }: Pick<Host, 'clock'>, devices: Devices, guard: DeviceGuard) =>
  defineTool({
    name: TOOL,
    description: `Runs code on a MicroPython board, at most ${RUN_MS / 1000} s, and returns what it printed, or its traceback. A running main.py is interrupted and started anew afterwards.`,
    input: v.object({
      device,
      code: v.pipe(v.string(), v.minLength(1), v.maxLength(CODE_BYTES_MAX), v.description('MicroPython code; print what you want to see')),
    }),
    risk: 'execute',
    async precheck({ device: asked }, { signal }) {
      checkConnected(await micropythonDevice(devices, asked, { tool: TOOL, signal }))
    },
    async run({ device: asked, code }, context) {
      const { signal } = context
      const { withRepl } = await import('../when-needed.ts')
      const { alias } = await micropythonDevice(devices, asked, { tool: TOOL, signal })
      const write = { code: code.slice(0, CODE_CHARS_KEPT), sha256: sha256Hex(code) }
      const { result: ran, restarted } = await guard.use({ device: alias, tool: TOOL, context, write }, () =>
        devices.withPort(alias, signal, (port) => withRepl(port, { name: alias, clock, signal }, (repl) => repl.run(code))),
      )
      context.report?.({ data: ran.stdout, ...((ran.stderr !== '' || ran.late) && { failed: true }) })
      return [...lines(alias, ran), ...(restarted ? ['', 'main.py was running, and has been started anew.'] : [])].join('\n')
    },
  })

const lines = (alias: string, { stdout, stderr, dropped, late }: Ran): string[] => [
  stdout === '' ? `${alias} printed nothing.` : `Output from ${alias}:\n${stdout.replace(/\n$/, '')}`,
  ...(dropped > 0 ? [`[${dropped} more bytes are left out]`] : []),
  ...(late ? [`It did not end within ${RUN_MS / 1000} s and was interrupted.`] : []),
  ...(stderr !== '' ? [`Error:\n${stderr.trimEnd()}`] : []),
]
