/**
 * `device_read_code`, `device_write_code` and `device_exec`: the tools for boards that run MicroPython. Each call interrupts
 * the program of the board, which is restarted afterwards.
 */
import type { DeviceGuard } from '@sluice/hardware'
import { AppError, defineTool, type Host, sha256Hex, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import { checkConnected, type Device, type Devices, mayRunMicropython } from '../devices.ts'
import { CODE_BYTES_MAX, MAIN_BYTES_MAX, RUN_MS } from '../repl/limits.ts'
import type { Ran } from '../repl/repl.ts'
import { device } from './gpio.ts'

/** The audit log keeps this much of the code, and its hash. */
const CODE_CHARS_KEPT = 512

export const deviceTools = (host: Host, devices: Devices, guard: DeviceGuard): Tool[] => [
  deviceReadCode(host, devices, guard),
  deviceWriteCode(host, devices, guard),
  deviceExec(host, devices, guard),
]

function deviceReadCode({ clock }: Host, devices: Devices, guard: DeviceGuard): Tool {
  const tool = 'device_read_code'
  return defineTool({
    name: tool,
    description:
      'Reads main.py, the program that a MicroPython board starts by itself. A running program is interrupted and restarted afterwards.',
    input: v.strictObject({ device }),
    // Reading needs approval too, because the interrupted program stops controlling its hardware.
    risk: 'execute',
    decider: 'asker',
    egress: false,
    untrusted: false,
    async precheck({ device: asked }, { signal }) {
      checkConnected(await micropythonDevice(devices, asked, tool, signal))
    },
    async run({ device: asked }, context) {
      const { signal } = context
      const { withRepl, readMain } = await import('../on-demand.ts')
      const { alias } = await micropythonDevice(devices, asked, tool, signal)
      const { result: code, wasRestarted } = await guard.use({ device: alias, tool, context }, () =>
        devices.withPort(alias, signal, (port) => withRepl(port, { name: alias, clock, signal }, readMain)),
      )
      if (code === undefined) return `There is no program on ${alias} yet: it has no main.py.`
      context.report?.({ data: code })
      if (code === '') return `main.py on ${alias} is empty.`
      const note = wasRestarted ? '\n\nIt was running, and has been restarted.' : ''
      return `main.py on ${alias}:\n\n${fenced(code)}${note}`
    },
  })
}

/** Encloses code in a fence longer than any fence in the code. */
function fenced(code: string): string {
  const longest = Math.max(2, ...[...code.matchAll(/`{3,}/g)].map(([fence]) => fence.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}python\n${code.replace(/\n?$/, '\n')}${fence}`
}

function deviceWriteCode({ clock }: Host, devices: Devices, guard: DeviceGuard): Tool {
  const tool = 'device_write_code'
  return defineTool({
    name: tool,
    description:
      'Replaces main.py, the program that a MicroPython board starts by itself, and resets the board so that it runs. The old program stays until the new one has arrived completely.',
    input: v.strictObject({
      device,
      code: v.pipe(v.string(), v.minLength(1), v.maxLength(MAIN_BYTES_MAX), v.description('The whole program, in MicroPython')),
    }),
    risk: 'execute',
    decider: 'asker',
    egress: false,
    untrusted: false,
    async precheck({ device: asked }, { signal }) {
      checkConnected(await micropythonDevice(devices, asked, tool, signal))
    },
    async run({ device: asked, code }, context) {
      const { signal } = context
      const { withRepl, writeMain } = await import('../on-demand.ts')
      const { alias } = await micropythonDevice(devices, asked, tool, signal)
      const write = { bytes: Buffer.byteLength(code), sha256: sha256Hex(code) }
      const session = { name: alias, clock, signal, reset: true }
      const { result } = await guard.use({ device: alias, tool, context, write }, () =>
        devices.withPort(alias, signal, (port) => withRepl(port, session, (repl) => writeMain(repl, code))),
      )
      return `Wrote main.py (${result.bytes} bytes, checked) on ${alias} and reset it: the program is running.`
    },
  })
}

function deviceExec({ clock }: Host, devices: Devices, guard: DeviceGuard): Tool {
  const tool = 'device_exec'
  return defineTool({
    name: tool,
    description: `Runs code on a MicroPython board for at most ${RUN_MS / 1000} s, without storing it there, and returns its output or its traceback. A running main.py is interrupted and restarted afterwards.`,
    input: v.strictObject({
      device,
      code: v.pipe(v.string(), v.minLength(1), v.maxLength(CODE_BYTES_MAX), v.description('MicroPython code; print what you want to see')),
    }),
    risk: 'execute',
    decider: 'asker',
    egress: false,
    untrusted: false,
    async precheck({ device: asked }, { signal }) {
      checkConnected(await micropythonDevice(devices, asked, tool, signal))
    },
    async run({ device: asked, code }, context) {
      const { signal } = context
      const { withRepl } = await import('../on-demand.ts')
      const { alias } = await micropythonDevice(devices, asked, tool, signal)
      const write = { code: code.slice(0, CODE_CHARS_KEPT), sha256: sha256Hex(code) }
      const { result: ran, wasRestarted } = await guard.use({ device: alias, tool, context, write }, () =>
        devices.withPort(alias, signal, (port) => withRepl(port, { name: alias, clock, signal }, (repl) => repl.run(code))),
      )
      context.report?.({ data: ran.stdout, ...((ran.stderr !== '' || ran.isLate) && { failed: true }) })
      return [...outputLines(alias, ran), ...(wasRestarted ? ['', 'main.py was running, and has been restarted.'] : [])].join('\n')
    },
  })
}

const outputLines = (alias: string, { stdout, stderr, dropped, isLate }: Ran): string[] => [
  stdout === '' ? `${alias} printed nothing.` : `Output from ${alias}:\n${stdout.replace(/\n$/, '')}`,
  ...(dropped > 0 ? [`[${dropped} more bytes are left out]`] : []),
  ...(isLate ? [`The code did not end within ${RUN_MS / 1000} s and was interrupted.`] : []),
  ...(stderr !== '' ? [`Error:\n${stderr.trimEnd()}`] : []),
]

/** Throws as `Devices.pick`, and `invalid_request` for a board that does not run MicroPython. */
async function micropythonDevice(devices: Devices, alias: string | undefined, tool: string, signal: AbortSignal): Promise<Device> {
  await devices.ready(signal)
  const picked = devices.pick(alias, alias === undefined ? mayRunMicropython : undefined)
  if (mayRunMicropython(picked)) return picked
  const why =
    picked.transport === 'serial'
      ? `runs firmware of its own, not MicroPython`
      : `is not on a serial port, so it has no MicroPython prompt (its transport is ${picked.transport})`
  throw new AppError('invalid_request', `${picked.alias} ${why}: ${tool} works on MicroPython boards, such as board_a and board_d`)
}
