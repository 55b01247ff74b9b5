/** `sluice peripheral flash`: writes firmware to a board, in the way that its family needs. */
import { resolve } from 'node:path'
import { type Board, boardNamed, THIS_MACHINE, unknownBoard } from '@sluice/hardware'
import { AppError, type Host, sha256Hex } from '@sluice/sdk'
import type { Device, Port } from '../devices.ts'
import { avrdude, flashByProgram, openocd } from '../flash/flash-by-program.ts'
import { flashUf2, IMAGE_BYTES_MAX } from '../flash/flash-uf2.ts'
import { checkBinary, imagePath, readImage } from '../flash/image-file.ts'
import { parseHex } from '../flash/parse-hex.ts'
import { MAIN_BYTES_MAX } from '../repl/limits.ts'
import { writeMain } from '../repl/main-file.ts'
import { withRepl } from '../repl/repl.ts'
import { readArguments } from './read-arguments.ts'
import type { Hardware, RunCommand } from './run-command.ts'

const BAUD = 115_200
const BINARY_BYTES_MAX = 4_194_304

interface Target {
  readonly board: Board
  /** The device, when it is connected. */
  readonly device: Device | undefined
  readonly port: string | undefined
}

interface Job extends Target {
  readonly image: Uint8Array
  /** The absolute path of the image. */
  readonly file: string
  /** Who flashes it. */
  readonly by: string
  readonly signal: AbortSignal
  /** Called with one line for each step. */
  readonly report: (line: string) => void
}

/** Writes the image and resolves to a sentence about it. */
type Write = (hardware: Hardware, job: Job) => Promise<string>

const ENDINGS: Readonly<Record<string, string>> = { board_a: 'uf2', board_b: 'hex', board_c: 'bin', board_d: 'py' }

export const flash: RunCommand = async (hardware, context) => {
  const { words, options } = readArguments(context, 'peripheral flash', [1], ['port', 'image'])
  const target = await targetOf(hardware, words[0] ?? '', options.port, context.signal)
  const { family } = target.board
  const file = resolve(context.cwd, options.image ?? imagePath(hardware.host.dataDir, family, ENDINGS[family] ?? 'bin'))
  const isProgram = file.endsWith('.py')
  const bytesMax = isProgram ? MAIN_BYTES_MAX : family === 'board_a' ? IMAGE_BYTES_MAX : BINARY_BYTES_MAX
  const image = await readImage(file, bytesMax).catch((error: unknown) => {
    if (options.image === undefined && error instanceof AppError && error.code === 'not_found') throw noImage(family, file)
    throw error
  })
  const write = isProgram ? writeProgram : (WRITE_BY_FAMILY[family] ?? writeProgram)
  const done = await write(hardware, { ...target, image, file, by: context.by, signal: context.signal, report: context.warn })
  const { alias = null } = target.device ?? {}
  context.print(context.json ? JSON.stringify({ board: target.board.name, alias, image: file, bytes: image.length, done }) : done)
  return 0
}

const WRITE_BY_FAMILY: Readonly<Partial<Record<Board['family'], Write>>> = {
  async board_a({ host, devices, mounts }, job) {
    const { device, image, signal, report } = job
    const before = () => record(host, job)
    const { device: back, bytes } = await flashUf2({ clock: host.clock, devices, mounts }, { device, image, signal, report, before })
    if (!back)
      throw new AppError(
        'upstream_timeout',
        `All ${bytes} bytes were copied, but the board has not come back: unplug it and plug it in again`,
      )
    return `Flashed ${bytes} bytes; ${back.alias} is back at ${back.path}.`
  },

  async board_b({ host }, job) {
    const { board, port, image, file, signal, report } = job
    const memory = board.memory.find(({ name }) => name === 'Flash')
    const flasher = port === undefined ? undefined : avrdude(board.name, port, file)
    if (!memory)
      throw new AppError('invalid_request', `${board.name} runs a system of its own, which is updated over its network, not from here`)
    if (!flasher) throw notConnected(board)
    const { bytes } = parseHex(image, memory)
    await record(host, job)
    await flashByProgram(host, flasher, signal, report)
    return `Flashed ${bytes} bytes to ${board.name} at ${port}.`
  },

  async board_c({ host, devices }, job) {
    const { board, device, image, file, signal, report } = job
    const memory = board.memory.find(({ name }) => name === 'Flash')
    if (!memory) throw new AppError('invalid_request', `The flash of ${board.name} is not known`)
    const other = device ? undefined : devices.all().find((each) => each.connected && each.usb && each.board?.family === 'board_c')
    if (other)
      throw new AppError('not_found', `No ${board.name} is connected; ${other.alias} is connected and would be overwritten instead`)
    const flasher = openocd(file, device?.usb?.serialNumber)
    if (file.endsWith('.hex')) parseHex(image, memory)
    else if (image.length > memory.length) throw new AppError('too_large', `${file} is larger than the flash of ${board.name}`)
    else if (file.endsWith('.bin')) checkBinary(image, board)
    await record(host, job)
    await flashByProgram(host, flasher, signal, report)
    return `Flashed ${image.length} bytes to ${board.name}.`
  },

  async board_d(_hardware, { file }) {
    throw new AppError(
      'invalid_request',
      `${file} is not a .py file: install MicroPython on a board_d with esptool (esptool write_flash 0x1000 …, see firmware/README.md), then flash a .py file from here`,
    )
  },
}

/** Writes `main.py`, the program that a MicroPython board starts by itself. */
const writeProgram: Write = async ({ host, devices, machine }, job) => {
  const { board, device, port, image, signal, report } = job
  if (board.runtime !== 'micropython')
    throw new AppError('invalid_request', `${board.name} does not run MicroPython, so it takes no .py file`)
  const path = port ?? device?.path
  if (path === undefined || path === null) throw notConnected(board)
  await record(host, job)
  report(`Writing ${image.length} bytes to main.py at ${path}`)
  const session = { name: device?.alias ?? path, clock: host.clock, signal, reset: true }
  const write = async (line: Port) => withRepl(line, session, (repl) => writeMain(repl, image))
  if (device) await devices.withPort(device.alias, signal, write)
  else {
    const line = await machine.open(path, BAUD, signal)
    await write(line).finally(() => line.close())
  }
  return `Wrote main.py (${image.length} bytes, checked) and reset the board: the program is running.`
}

const notConnected = ({ name }: Board): AppError =>
  new AppError('not_found', `No ${name} is connected: plug it in, or name its port with --port`)

/**
 * Resolves an alias or the name of a board to the device to flash. Throws `invalid_request` for a name that is unknown,
 * ambiguous or cannot be flashed, and as `checkDevicePath` for a wrong port.
 */
async function targetOf({ devices, machine }: Hardware, name: string, port: string | undefined, signal: AbortSignal): Promise<Target> {
  if (port !== undefined) await machine.check(port)
  const all = await devices.discover(signal)
  const alias = all.find((device) => device.alias === name)
  const isKind = boardNamed(name) !== undefined && alias?.board?.name !== name
  // For example, board_c1 is a kind of board, and may also be the alias of the second board of its family.
  if (alias && isKind && port === undefined)
    throw new AppError(
      'invalid_request',
      `${name} is a kind of board and also the alias of ${alias.board?.name ?? 'another board'}: give the kind, and the port with --port`,
    )
  const named = isKind ? undefined : alias
  const board = named ? named.board : boardNamed(name)
  if (name === THIS_MACHINE || named?.transport === 'native')
    throw new AppError('invalid_request', `${name} is this machine, which cannot be flashed`)
  if (!board)
    throw new AppError(
      'invalid_request',
      named ? `The kind of ${name} is not known: give the name of the board, and its port with --port` : unknownBoard(name),
    )
  const fits = (device: Device) => device.connected && device.transport === 'serial' && device.board?.name === board.name
  if (port !== undefined) return { board, device: all.find((device) => device.connected && device.path === port), port }
  const device = named ?? (all.some(fits) ? devices.pick(undefined, fits) : undefined)
  if (device && device.transport !== 'serial')
    throw new AppError('invalid_request', `${device.alias} cannot be flashed, because its transport is ${device.transport}`)
  const connected = device?.connected ? device : undefined
  return { board, device: connected, port: connected?.path ?? undefined }
}

/** Records the job in the audit log. Throws `unavailable` without an audit log. */
async function record(host: Host, { by, board, device, image, file }: Job): Promise<void> {
  const audit = host.service('audit')
  if (!audit) throw new AppError('unavailable', 'The board was not flashed, because there is no audit log to record it in')
  const detail = {
    device: device?.alias ?? board.name,
    tool: 'peripheral flash',
    image: file,
    bytes: image.length,
    sha256: sha256Hex(image),
  }
  await audit({ by, detail })
}

function noImage(family: Board['family'], file: string): AppError {
  const how =
    family === 'board_a'
      ? 'get MicroPython for RP2040 as .uf2 from https://micropython.org/download/RPI_PICO/'
      : 'firmware/README.md of the source says how to build it'
  return new AppError('not_found', `There is no image at ${file}; ${how}, and put it there or name it with --image`)
}
