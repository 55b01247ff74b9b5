/** Checks for `sluice doctor` whether the boards can be reached on this machine, and says how to correct it when they cannot. */
import { type BoardEntry, boardEntryProblem } from '@sluice/hardware'
import { AppError, errorText, type Finding, howToGet } from '@sluice/sdk'
import type { Device, Devices } from './devices.ts'
import { loadSerialLibrary, SERIAL_FIX } from './native.ts'
import { usbText } from './registry/usb.ts'
import type { BoardLine } from './transports/board-line.ts'
import { deniedAccess } from './transports/port-access.ts'

/** The boards that are checked. */
interface Boards extends Pick<Devices, 'discover' | 'seen'> {
  line(alias: string): BoardLine
}

const NATIVE_FIX = `On a supported single-board computer, ${howToGet('hardware-sbc')}`

export async function checkBoards(registry: Boards, configured: readonly BoardEntry[], signal: AbortSignal): Promise<readonly Finding[]> {
  // A machine without a configured serial board does not need the library.
  const isNeeded = configured.some(({ transport }) => transport === 'serial')
  const library = await loadSerialLibrary().then(
    (): Finding => ({ status: 'ok', detail: 'serialport works here' }),
    (error: unknown): Finding => ({ status: isNeeded ? 'fail' : 'warn', detail: errorText(error), fix: SERIAL_FIX }),
  )
  const problems = configured.flatMap((entry): Finding[] => {
    const problem = boardEntryProblem(entry)
    return problem === undefined ? [] : [{ status: 'warn', detail: problem, fix: 'Correct it in [[peripherals.boards]]' }]
  })
  const devices = await registry.discover(signal)
  const boards = await Promise.all(devices.map((device) => checkDevice(registry, device, signal)))
  if (boards.length > 0) return [library, ...problems, ...boards]
  const seen = registry.seen().map(usbText).join(', ')
  return [library, ...problems, { status: 'ok', detail: `No board is connected; USB shows ${seen || 'no devices'}` }]
}

async function checkDevice(registry: Boards, { alias, path, transport, connected }: Device, signal: AbortSignal): Promise<Finding> {
  if (!connected) return { status: 'warn', detail: `${alias} is not connected`, fix: transport === 'native' ? NATIVE_FIX : 'Plug it in' }
  const denied = transport === 'serial' && path !== null ? await deniedAccess(path) : undefined
  if (denied) return { status: 'fail', detail: `${alias}: ${denied.detail}`, fix: denied.fix }
  if (transport === 'bridge') return checkBridge(registry, alias, signal)
  return { status: 'ok', detail: `${alias} is ${path === null ? `available (${transport})` : `at ${path}`}` }
}

/** Reads a pin, because a bridge answers nothing else. A refusal is an answer too. */
async function checkBridge(registry: Boards, alias: string, signal: AbortSignal): Promise<Finding> {
  try {
    await registry.line(alias).read(0, signal)
  } catch (error) {
    const isRefusal = error instanceof AppError && error.code === 'upstream'
    if (!isRefusal)
      return { status: 'fail', detail: errorText(error), fix: 'Start the bridge, or correct its path in [[peripherals.boards]]' }
  }
  return { status: 'ok', detail: `${alias} answers` }
}
