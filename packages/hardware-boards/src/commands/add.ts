/**
 * `sluice peripheral add`: adds a board to the configuration, and asks which one when it is run without arguments at a
 * terminal.
 */
import { BOARD_NAMES, boardNamed, bridgeAddress, isDevicePath, THIS_MACHINE, unknownBoard } from '@sluice/hardware'
import { AppError, type CommandContext } from '@sluice/sdk'
import type { Device } from '../devices.ts'
import { deviceLine } from './list-devices.ts'
import { readArguments } from './read-arguments.ts'
import type { Hardware, RunCommand } from './run-command.ts'

/** How often a question is asked. */
const ATTEMPTS = 3

interface Choice {
  readonly board: string
  readonly transport: Device['transport']
  readonly path: string | undefined
}

export const add: RunCommand = async (hardware, context) => {
  const { words } = readArguments(context, 'peripheral add', context.ask ? [0, 2] : [2])
  const [board, place] = words
  const choice = board === undefined || place === undefined ? await choose(hardware, context) : choiceOf(board, place)
  if (!choice) {
    context.warn('No board was added.')
    return 1
  }
  await addChoice(hardware, context, choice)
  return 0
}

async function addChoice({ config, machine }: Hardware, context: CommandContext, choice: Choice): Promise<void> {
  const { board, transport, path } = choice
  const same = config.boards.find(
    (entry) => entry.transport === transport && entry.path === path && (path !== undefined || entry.board === board),
  )
  if (same) {
    const where = path ?? transport
    if (same.board !== board) throw new AppError('conflict', `${where} is already configured as ${same.board}`)
    const unused = config.enabled ? '' : ', but not used: set enabled = true under [peripherals]'
    return printResult(context, { added: false, ...choice }, `${board} at ${where} is already configured${unused}.`)
  }
  if (transport === 'serial' && path !== undefined) {
    await machine.check(path).catch((error: unknown) => {
      if (!(error instanceof AppError) || error.code !== 'not_found') throw error
      context.warn(`There is no ${path} now; the board is added anyway.`)
    })
  }
  await context.addToConfig({
    list: 'peripherals.boards',
    entry: { board, transport, ...(path === undefined ? {} : { path }) },
    set: { 'peripherals.enabled': true },
  })
  printResult(context, { added: true, ...choice }, `Added ${board} at ${path ?? transport}. A running daemon picks it up by itself.`)
}

const printResult = ({ json, print }: CommandContext, data: object, line: string): void => print(json ? JSON.stringify(data) : line)

/** Throws `invalid_request` for an unknown board and for a place where no board can be. */
function choiceOf(board: string, place: string): Choice {
  if (!boardNamed(board) && board !== THIS_MACHINE) throw new AppError('invalid_request', unknownBoard(board))
  if ((board === THIS_MACHINE) !== (place === 'native'))
    throw new AppError('invalid_request', `${THIS_MACHINE} is this machine: give native as its place, and as the place of no other board`)
  if (place === 'native' || place === 'sim') return { board, transport: place, path: undefined }
  if (isDevicePath(place, 'serial')) return { board, transport: 'serial', path: place }
  // The port is required here, because any single word could be the name of a host.
  if (/:\d+$/.test(place) && bridgeAddress(place)) return { board, transport: 'bridge', path: place }
  throw new AppError(
    'invalid_request',
    `${JSON.stringify(place.slice(0, 255))} is not a place of a board: give a serial port such as /dev/ttyACM0, native, sim or host:port`,
  )
}

/** Asks at the terminal. Returns undefined when the operator enters nothing or never gives a valid answer. */
async function choose({ devices, config }: Hardware, { ask, print, signal }: CommandContext): Promise<Choice | undefined> {
  const configured = new Set(config.boards.map(({ path }) => path))
  const free = (await devices.discover(signal)).filter(
    ({ path, transport, connected }) => transport === 'serial' && connected && path !== null && !configured.has(path),
  )
  print(free.length === 0 ? 'No board was found that is not configured yet.' : 'Found:')
  for (const [index, device] of free.entries()) print(`  ${index + 1}.${await deviceLine(device)}`)
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const answer = (await ask?.(free.length === 0 ? PLACE : `Which one (1 to ${free.length})? Or: ${PLACE}`))?.trim()
    if (!answer) return undefined
    const device = free[Number(answer) - 1]
    const place = device?.path ?? answer
    const board = device?.board?.name ?? (await ask?.(`Which board is it (${BOARD_NAMES.join(', ')})?`))?.trim()
    if (!board) return undefined
    try {
      return choiceOf(board, place)
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      print(error.message)
    }
  }
  return undefined
}

const PLACE = 'Where is it (a serial port, native, sim or host:port)? An empty answer ends this.'
