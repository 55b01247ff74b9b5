/** The work of `board_a_flash`: checks the image, finds the board, and flashes it. */
import type { DeviceGuard } from '@sluice/hardware'
import { AppError, type Host, sha256Hex, type ToolContext, type Workspace } from '@sluice/sdk'
import type { Device, Devices } from '../devices.ts'
import { findBootVolume, type Mounts } from '../flash/boot-volume.ts'
import { BOARD_ID, flashUf2, IMAGE_BYTES_MAX, noBoardA, uf2Target } from '../flash/flash-uf2.ts'
import { imagePath, readImage } from '../flash/image-file.ts'
import { parseUf2 } from '../flash/parse-uf2.ts'

const TOOL = 'board_a_flash'
/** The device name for the guard while the board waits in its boot loader, where it has no serial number. */
const BOOT_DEVICE = 'board_a_boot'

/** The parts of the feature that the tool uses. */
export interface FlashAccess {
  readonly host: Host
  readonly devices: Devices
  readonly guard: DeviceGuard
  /** The mounts of this machine unless given. */
  readonly mounts: Mounts | undefined
}

export interface FlashBoardAInput {
  readonly confirm: boolean
  /** The alias. */
  readonly device?: string | undefined
  /** A path in the workspace. */
  readonly image?: string | undefined
}

export async function flashBoardA(
  { host, devices, guard, mounts }: FlashAccess,
  { confirm, device: alias, image: path }: FlashBoardAInput,
  context: ToolContext,
): Promise<string> {
  const { signal } = context
  if (!confirm)
    throw new AppError('invalid_request', 'Nothing was flashed: set confirm to true, because the present contents of the board are lost')
  const image = await imageFrom(host, context.workspace, path)
  parseUf2(image, uf2Target())
  await devices.ready(signal)
  const device = runningBoardA(devices, alias)
  const write = { image: path ?? 'default', bytes: image.length, sha256: sha256Hex(image) }
  const { device: back, bytes } = await guard.use({ device: device?.alias ?? BOOT_DEVICE, tool: TOOL, context, write }, () =>
    flashUf2({ clock: host.clock, devices, mounts }, { device, image, signal, report: () => undefined }),
  )
  return back
    ? `Flashed ${bytes} bytes. ${back.alias} is back at ${back.path ?? 'its place'}.`
    : `Copied all ${bytes} bytes, but the board has not come back with a serial port: unplug it and plug it in again; if it stays away, the image does not suit it.`
}

/** Throws `not_found` when there is neither a running board to flash nor one in its boot loader. */
export async function checkBoardA(
  devices: Devices,
  mounts: Mounts | undefined,
  alias: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  await devices.ready(signal)
  const running = runningBoardA(devices, alias)
  if (!running?.connected && !(await findBootVolume(BOARD_ID, mounts))) throw noBoardA()
}

/** Returns undefined when no board_a is running; the call then flashes a board in its boot loader. Throws as `Devices.pick` does. */
function runningBoardA(devices: Devices, alias: string | undefined): Device | undefined {
  const isBoardA = ({ board, connected, transport }: Device) => connected && transport === 'serial' && board?.family === 'board_a'
  if (alias === undefined) return devices.all().some(isBoardA) ? devices.pick(undefined, isBoardA) : undefined
  const chosen = devices.pick(alias)
  if (chosen.transport !== 'serial' || chosen.board?.family !== 'board_a')
    throw new AppError('invalid_request', `${alias} is not a board_a: ${TOOL} writes UF2 images to board_a only`)
  return chosen
}

async function imageFrom({ dataDir }: Host, workspace: Workspace, path: string | undefined): Promise<Uint8Array> {
  if (path !== undefined) return workspace.read(path, { bytesMax: IMAGE_BYTES_MAX })
  const stored = imagePath(dataDir, 'board_a', 'uf2')
  return readImage(stored, IMAGE_BYTES_MAX).catch((error: unknown) => {
    if (!(error instanceof AppError) || error.code !== 'not_found') throw error
    throw new AppError(
      'not_found',
      `No image is given, and there is none at ${stored}: get MicroPython for RP2040 as .uf2 from https://micropython.org/download/RPI_PICO/`,
    )
  })
}
