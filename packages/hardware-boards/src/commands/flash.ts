/** `sluice peripheral flash`: firmware onto a board, each kind by its own way. */
import { userInfo } from 'node:os'
import { resolve } from 'node:path'
import { type Board, boardNamed, THIS_MACHINE, unknownBoard } from '@sluice/hardware'
import { AppError, type CommandContext, sha256Hex } from '@sluice/sdk'
import type { Device } from '../devices.ts'
import { checkBinary } from '../flash/check-binary.ts'
import { avrdude, flashByProgram, openocd } from '../flash/flash-by-program.ts'
import { flashUf2, IMAGE_BYTES_MAX } from '../flash/flash-uf2.ts'
import { parseHex } from '../flash/parse-hex.ts'
import { imagePath, readImage } from '../flash/read-image.ts'
import { MAIN_BYTES_MAX } from '../repl/limits.ts'
import { writeMain } from '../repl/main-file.ts'
import { withRepl } from '../repl/repl.ts'
import type { CommandDeps, RunCommand } from './commands.ts'
import { readArguments } from './read-arguments.ts'

const BAUD = 115_200
const PROGRAM_BYTES_MAX = 4_194_304

interface Target {
  readonly board: Board
  /** The one that is connected. */
  readonly device: Device | undefined
  readonly port: string | undefined
}

interface Job extends Target {
  readonly image: Uint8Array
  readonly file: string
  readonly say: (line: string) => void
}

const ENDINGS: Readonly<Record<string, string>> = { board_a: 'uf2', board_b: 'hex', board_c: 'bin', board_d: 'py' }

export const flash: RunCommand = async (deps, context) => {
  const { words, options } = readArguments(context, 'peripheral flash', [1], ['port', 'image'])
  const target = await targetOf(deps, words[0] ?? '', options.port, context.signal)
  const { family } = target.board
  const file = resolve(options.image ?? imagePath(deps.host.dataDir, family, ENDINGS[family] ?? 'bin'))
  const isProgram = file.endsWith('.py')
  const image = await readImage(file, isProgram ? MAIN_BYTES_MAX : family === 'board_a' ? IMAGE_BYTES_MAX : PROGRAM_BYTES_MAX).catch(
    (error: unknown) => {
      if (options.image === undefined && error instanceof AppError && error.code === 'not_found') throw noImage(family, file)
      throw error
    },
  )
  const job: Job = { ...target, image, file, say: context.warn }
  const way = isProgram ? writeProgram : (WAYS[family] ?? writeProgram)
  const done = await way(deps, context, job)
  const { alias = null } = target.device ?? {}
  context.print(context.json ? JSON.stringify({ board: target.board.name, alias, image: file, bytes: image.length, done }) : done)
  return 0
}

type Way = (deps: CommandDeps, context: CommandContext, job: Job) => Promise<string>

const WAYS: Readonly<Partial<Record<Board['family'], Way>>> = {
  async board_a({ host, devices, mounts }, { signal }, { device, image, file, say, board }) {
    const before = () => record({ host }, { board, device, image, file })
    const deps = { clock: host.clock, devices, ...(mounts && { mounts }) }
    const { device: back, bytes } = await flashUf2(deps, { device, image, signal, say, before })
    if (!back)
      throw new AppError(
        'upstream_timeout',
        `All ${bytes} bytes were copied, but the board has not come back: unplug it and plug it in anew`,
      )
    return `Flashed ${bytes} bytes; ${back.alias} is back at ${back.path}.`
  },

  async board_b({ host }, { signal }, { board, device, port, image, file, say }) {
    const memory = board.memory.find(({ name }) => name === 'Flash')
    const flasher = port === undefined ? undefined : avrdude(board.name, port, file)
    if (!memory)
      throw new AppError('invalid_request', `${board.name} runs a system of its own, which is updated over its network, not from here`)
    if (!flasher) throw new AppError('not_found', `No ${board.name} is connected: plug it in, or name its port with --port`)
    const { bytes } = parseHex(image, memory)
    await record({ host }, { board, device, image, file })
    await flashByProgram(host, flasher, { signal, say })
    return `Flashed ${bytes} bytes to ${board.name} at ${port}.`
  },

  async board_c({ host, devices }, { signal }, { board, device, image, file, say }) {
    const memory = board.memory.find(({ name }) => name === 'Flash')
    if (!memory) throw new AppError('invalid_request', `${board.name} has no flash that is known`)
    const other = device ? undefined : devices.all().find((each) => each.connected && each.usb && each.board?.family === 'board_c')
    if (other) throw new AppError('not_found', `No ${board.name} is connected, and ${other.alias}, which is, would be written instead`)
    const flasher = openocd(file, device?.usb?.serialNumber)
    if (file.endsWith('.hex')) parseHex(image, memory)
    else if (image.length > memory.length) throw new AppError('too_large', `${file} is larger than the flash of ${board.name}`)
    else if (file.endsWith('.bin')) checkBinary(image, board)
    await record({ host }, { board, device, image, file })
    await flashByProgram(host, flasher, { signal, say })
    return `Flashed ${image.length} bytes to ${board.name}.`
  },

  async board_d(_deps, _context, { file }) {
    throw new AppError(
      'invalid_request',
      `${file} is no program: board_d gets MicroPython by its own tool (esptool write_flash 0x1000 …, see firmware/README.md), and then a .py file from here`,
    )
  },
}

/** The program a MicroPython board starts by itself. */
const writeProgram: Way = async ({ host, devices, machine }, { signal }, { board, device, port, image, file, say }) => {
  if (board.runtime !== 'micropython')
    throw new AppError('invalid_request', `${board.name} does not run MicroPython, so it takes no .py file`)
  const path = port ?? device?.path
  if (path === undefined || path === null)
    throw new AppError('not_found', `No ${board.name} is connected: plug it in, or name its port with --port`)
  await record({ host }, { board, device, image, file })
  say(`Writing ${image.length} bytes to main.py at ${path}`)
  const write = async (line: Parameters<typeof withRepl>[0]) =>
    withRepl(line, { name: device?.alias ?? path, clock: host.clock, signal, reset: true }, (repl) => writeMain(repl, image))
  if (device) await devices.withPort(device.alias, signal, write)
  else {
    const line = await machine.open(path, BAUD, signal)
    await write(line).finally(() => line.close())
  }
  return `Wrote main.py (${image.length} bytes, checked) and reset the board: the program is running.`
}

/** Throws `invalid_request` for a board nobody knows, `not_found`, and as `checkDevicePath`. */
async function targetOf({ devices, machine }: CommandDeps, name: string, port: string | undefined, signal: AbortSignal): Promise<Target> {
  if (port !== undefined) await machine.check(port)
  const all = await devices.discover(signal)
  const alias = all.find((device) => device.alias === name)
  const isKind = boardNamed(name) !== undefined && alias?.board?.name !== name
  // board_c1 is a kind of board, and may be the second board of its family: which is meant cannot be told.
  if (alias && isKind && port === undefined)
    throw new AppError(
      'invalid_request',
      `${name} is a kind of board, and here the alias of ${alias.board?.name ?? 'another'}: give the port with --port, and the kind`,
    )
  const named = isKind ? undefined : alias
  const board = named ? named.board : boardNamed(name)
  if (name === THIS_MACHINE || named?.transport === 'native')
    throw new AppError('invalid_request', `${name} is this machine: there is nothing to flash`)
  if (!board)
    throw new AppError(
      'invalid_request',
      named ? `What ${name} is, is not known: give the board's name, and its port with --port` : unknownBoard(name),
    )
  const fits = (device: Device) => device.connected && device.transport === 'serial' && device.board?.name === board.name
  if (port !== undefined) return { board, device: all.find((device) => device.connected && device.path === port), port }
  const device = named ?? (all.some(fits) ? devices.pick(undefined, fits) : undefined)
  if (device && device.transport !== 'serial')
    throw new AppError('invalid_request', `${device.alias} is ${device.transport}: there is nothing to flash`)
  const connected = device?.connected ? device : undefined
  return { board, device: connected, port: connected?.path ?? undefined }
}

async function record(
  { host }: Pick<CommandDeps, 'host'>,
  {
    board,
    device,
    image,
    file,
  }: { readonly board: Board; readonly device: Device | undefined; readonly image: Uint8Array; readonly file: string },
): Promise<void> {
  const audit = host.service('audit')
  if (!audit) throw new AppError('unavailable', 'There is no audit log to write this to')
  const detail = {
    device: device?.alias ?? board.name,
    tool: 'peripheral flash',
    image: file,
    bytes: image.length,
    sha256: sha256Hex(image),
  }
  await audit({ by: operator(), detail })
}

function noImage(family: Board['family'], file: string): AppError {
  const how =
    family === 'board_a'
      ? 'get MicroPython for RP2040 as .uf2 from https://micropython.org/download/RPI_PICO/'
      : 'firmware/README.md of the source says how to build it'
  return new AppError('not_found', `There is no image at ${file}; ${how}, and put it there or name it with --image`)
}

/** Who decides at this terminal; a user without a name is known by their number. */
function operator(): string {
  try {
    return `cli:${userInfo().username}`
  } catch {
    return `cli:${process.getuid?.() ?? 'unknown'}`
  }
}
