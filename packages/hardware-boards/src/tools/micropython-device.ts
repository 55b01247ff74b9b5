/** The MicroPython board a tool was asked for. */
import { AppError } from '@sluice/sdk'
import type { Device, Devices } from '../devices.ts'

/** A board that is not in the table may run it: its REPL answers or it does not. */
export const mayRunMicropython = ({ board, transport }: Device): boolean =>
  transport === 'serial' && (board === undefined || board.runtime === 'micropython')

/** Throws as `Devices.pick`, and `invalid_request` for a board that runs something else. */
export async function micropythonDevice(
  devices: Devices,
  alias: string | undefined,
  { tool, signal }: { readonly tool: string; readonly signal: AbortSignal },
): Promise<Device> {
  await devices.ready(signal)
  const device = devices.pick(alias, alias === undefined ? mayRunMicropython : undefined)
  if (mayRunMicropython(device)) return device
  const why =
    device.transport === 'serial'
      ? `runs firmware of its own, not MicroPython`
      : `is no board on a serial port, and has no MicroPython prompt (its transport is ${device.transport})`
  throw new AppError('invalid_request', `${device.alias} ${why}: ${tool} works on MicroPython boards, such as board_a and board_d`)
}
