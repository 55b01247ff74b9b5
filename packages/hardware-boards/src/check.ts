/** Proves on this machine that boards can be reached, and says what is missing where they cannot; for `sluice doctor`. */
import { type BoardEntry, boardEntryProblem } from '@sluice/hardware'
import { AppError, buildHint, errorText, type Finding } from '@sluice/sdk'
import { loadSerialLibrary, SERIAL_FIX } from './native.ts'
import type { Registry } from './registry/registry.ts'
import { usbText } from './registry/usb.ts'
import { deniedAccess } from './transports/port-access.ts'

export async function checkBoards(registry: Registry, configured: readonly BoardEntry[], signal: AbortSignal): Promise<readonly Finding[]> {
  // A machine that has no board to reach lacks nothing.
  const isNeeded = configured.some(({ transport }) => transport === 'serial')
  const library = await loadSerialLibrary().then(
    (): Finding => ({ status: 'ok', detail: 'serialport works here' }),
    (error: unknown): Finding => ({ status: isNeeded ? 'fail' : 'warn', detail: errorText(error), fix: SERIAL_FIX }),
  )
  const doubts = configured.flatMap((entry): Finding[] => {
    const doubt = boardEntryProblem(entry)
    return doubt === undefined ? [] : [{ status: 'warn', detail: doubt, fix: 'Correct it in [[peripherals.boards]]' }]
  })
  const devices = await registry.discover(signal)
  const boards = await Promise.all(
    devices.map(async ({ alias, path, transport, connected }): Promise<Finding> => {
      if (!connected) return { status: 'warn', detail: `${alias} is not connected`, fix: transport === 'native' ? nativeFix : 'Plug it in' }
      const denied = transport === 'serial' && path !== null ? await deniedAccess(path) : undefined
      if (denied) return { status: 'fail', detail: `${alias}: ${denied.detail}`, fix: denied.fix }
      if (transport === 'bridge') return answering(registry, alias, signal)
      return { status: 'ok', detail: `${alias} is ${path === null ? `there (${transport})` : `at ${path}`}` }
    }),
  )
  if (boards.length > 0) return [library, ...doubts, ...boards]
  const seen = registry.seen().map(usbText).join(', ')
  return [library, ...doubts, { status: 'ok', detail: `No board is connected; USB shows ${seen || 'nothing'}` }]
}

const nativeFix = `On a supported single-board computer: ${buildHint('hardware-sbc')}`

/** A bridge is asked for a pin: there is nothing else it answers. */
async function answering(registry: Registry, alias: string, signal: AbortSignal): Promise<Finding> {
  try {
    await registry.line(alias).read(0, signal)
  } catch (error) {
    const refused = error instanceof AppError && error.code === 'upstream'
    if (!refused)
      return { status: 'fail', detail: errorText(error), fix: 'Start the bridge, or correct its path in [[peripherals.boards]]' }
  }
  return { status: 'ok', detail: `${alias} answers` }
}
