/** `sluice peripheral add`: one more board in the configuration; asks where it is not told which. */
import { BOARD_NAMES, boardNamed, bridgeAddress, isDevicePath, THIS_MACHINE, unknownBoard } from '@sluice/hardware'
import { AppError, type CommandContext } from '@sluice/sdk'
import type { Device } from '../devices.ts'
import type { CommandDeps, RunCommand } from './commands.ts'
import { deviceLine } from './describe-device.ts'
import { readArguments } from './read-arguments.ts'

/** Of one question. */
const ATTEMPTS = 3

interface Choice {
  readonly board: string
  readonly transport: Device['transport']
  readonly path: string | undefined
}

export const add: RunCommand = async (deps, context) => {
  const { words } = readArguments(context, 'peripheral add', context.ask ? [0, 2] : [2])
  const [board, place] = words
  const choice = board === undefined || place === undefined ? await choose(deps, context) : choiceOf(board, place)
  if (!choice) {
    context.warn('Nothing was added.')
    return 1
  }
  await addChoice(deps, context, choice)
  return 0
}

async function addChoice({ host, config, machine }: CommandDeps, context: CommandContext, choice: Choice): Promise<void> {
  const { board, transport, path } = choice
  const same = config.boards.find(
    (entry) => entry.transport === transport && entry.path === path && (path !== undefined || entry.board === board),
  )
  if (same) {
    const where = path ?? transport
    if (same.board !== board) throw new AppError('conflict', `${where} is configured as ${same.board} already`)
    const unused = config.enabled ? '' : ', but not used: set enabled = true under [peripherals]'
    return told(context, { added: false, ...choice }, `${board} at ${where} is configured already${unused}.`)
  }
  if (transport === 'serial' && path !== undefined) {
    await machine.check(path).catch((error: unknown) => {
      if (!(error instanceof AppError) || error.code !== 'not_found') throw error
      context.warn(`There is no ${path} now; it is added all the same.`)
    })
  }
  const addToConfig = host.service('addToConfig')
  if (!addToConfig) throw new AppError('unavailable', 'The configuration cannot be changed from here')
  await addToConfig({
    list: 'peripherals.boards',
    entry: { board, transport, ...(path === undefined ? {} : { path }) },
    set: { 'peripherals.enabled': true },
  })
  told(context, { added: true, ...choice }, `Added ${board} at ${path ?? transport}. A daemon that runs takes it up by itself.`)
}

const told = ({ json, print }: CommandContext, data: object, line: string): void => print(json ? JSON.stringify(data) : line)

/** Throws `invalid_request` for a board nobody knows, and for what is no place of a board. */
function choiceOf(board: string, place: string): Choice {
  if (!boardNamed(board) && board !== THIS_MACHINE) throw new AppError('invalid_request', unknownBoard(board))
  if ((board === THIS_MACHINE) !== (place === 'native'))
    throw new AppError('invalid_request', `${THIS_MACHINE} is this machine: its place, and of no other board, is native`)
  if (place === 'native' || place === 'sim') return { board, transport: place, path: undefined }
  if (isDevicePath(place, 'serial')) return { board, transport: 'serial', path: place }
  // Any word could be a host: here one is named with its port.
  if (/:\d+$/.test(place) && bridgeAddress(place)) return { board, transport: 'bridge', path: place }
  throw new AppError(
    'invalid_request',
    `${JSON.stringify(place.slice(0, 255))} is no place of a board: give a serial port such as /dev/ttyACM0, native, sim or host:port`,
  )
}

/** Undefined: whoever was asked has ended it. */
async function choose({ devices, config }: CommandDeps, { ask, print, signal }: CommandContext): Promise<Choice | undefined> {
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

const PLACE = 'Where is it (a serial port, native, sim or host:port)? Nothing ends this.'
