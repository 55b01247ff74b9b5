/** `sluice hardware introspect`: opens a port and asks for the firmware by the line protocol, then for MicroPython's prompt. */
import { AppError, errorText } from '@sluice/sdk'
import { type Device, mayRunMicropython, type Port } from '../devices.ts'
import { type Capabilities, capabilitiesOf } from '../protocol/answers.ts'
import { plainText } from '../protocol/frame.ts'
import { Link } from '../protocol/link.ts'
import { withRepl } from '../repl/repl.ts'
import { readArguments } from './read-arguments.ts'
import type { Hardware, RunCommand } from './run-command.ts'

const BAUD = 115_200
/** Enough for a board that restarts when its port is opened. */
const PINGS = 8

const ABOUT = `
import sys
print('.'.join(str(n) for n in sys.implementation.version[:3]))
print(sys.platform)
print(getattr(sys.implementation, '_machine', ''))
`

interface Answers {
  readonly firmware: Capabilities | null
  readonly micropython: { readonly version: string; readonly platform: string; readonly machine: string } | null
  /** The error when there was no answer. */
  readonly silence: string | null
}

const NO_ANSWERS: Answers = { firmware: null, micropython: null, silence: null }

export const introspect: RunCommand = async (hardware, context) => {
  const [path = ''] = readArguments(context, 'hardware introspect', [1]).words
  await hardware.machine.check(path)
  const device = (await hardware.devices.discover(context.signal)).find((known) => known.path === path && known.transport === 'serial')
  const answers = await ask(hardware, path, device, context.signal)
  if (context.json) context.print(JSON.stringify({ ...identity(path, device), ...answers }))
  else for (const line of lines(path, device, answers)) context.print(line)
  return answers.silence === null ? 0 : 1
}

async function ask({ host, machine }: Hardware, path: string, device: Device | undefined, signal: AbortSignal): Promise<Answers> {
  const port = await machine.open(path, device?.baud ?? BAUD, signal)
  try {
    const link = new Link(port, path, host.clock)
    try {
      await link.hello(signal, PINGS)
      const firmware = capabilitiesOf(path, await link.request('capabilities', {}, { signal, repeatable: true }))
      return { ...NO_ANSWERS, firmware }
    } catch (error) {
      if (signal.aborted || !(error instanceof AppError)) throw error
      if (error.code !== 'upstream_timeout') return { ...NO_ANSWERS, silence: errorText(error) }
      if (device && !mayRunMicropython(device)) return { ...NO_ANSWERS, silence: errorText(error) }
    }
    return await askMicropython({ name: path, clock: host.clock, signal }, port)
  } finally {
    await port.close()
  }
}

async function askMicropython(session: Parameters<typeof withRepl>[1], port: Port): Promise<Answers> {
  try {
    const { result } = await withRepl(port, session, (repl) => repl.ask(ABOUT))
    const [version = '', platform = '', machine = ''] = result.split('\n').map(plainText)
    return { ...NO_ANSWERS, micropython: { version, platform, machine } }
  } catch (error) {
    if (session.signal.aborted || !(error instanceof AppError)) throw error
    return { ...NO_ANSWERS, silence: errorText(error) }
  }
}

const identity = (path: string, device: Device | undefined) => ({
  path,
  alias: device?.alias ?? null,
  usb: device?.usb ? `${device.usb.vendor}:${device.usb.product}` : null,
  serial_number: device?.usb?.serialNumber ?? null,
  board: device?.board?.name ?? null,
  memory: device?.board?.memory ?? [],
})

function lines(path: string, device: Device | undefined, { firmware, micropython, silence }: Answers): string[] {
  const { alias, usb, board } = identity(path, device)
  const rows: [string, string | null | undefined][] = [
    ['Alias', alias],
    ['USB', usb],
    ['Board', board && `${board} (${device?.board?.chip})`],
    ['Architecture', device?.board?.architecture],
    ['Firmware', firmware && (firmware.firmware ?? 'speaks the line protocol')],
    ['Reports', firmware?.board],
    ['GPIO', firmware?.gpio?.join(', ')],
    ['LED', firmware?.led === null || firmware?.led === undefined ? null : `pin ${firmware.led}`],
    [
      'MicroPython',
      micropython && `${micropython.version} on ${micropython.platform}${micropython.machine && ` (${micropython.machine})`}`,
    ],
    ['Answer', silence && `none: ${silence}`],
  ]
  const memory = device?.board?.memory.map(
    ({ name, start, length }) => `  ${name.padEnd(8)} 0x${start.toString(16).padStart(8, '0')}  ${length / 1024} KiB`,
  )
  return [
    `Device at ${path}:`,
    ...rows.flatMap(([name, value]) => (value ? [`  ${`${name}:`.padEnd(14)} ${value}`] : [])),
    ...(memory && memory.length > 0 ? ['  Memory, from the data sheet:', ...memory.map((line) => `  ${line}`)] : []),
  ]
}
