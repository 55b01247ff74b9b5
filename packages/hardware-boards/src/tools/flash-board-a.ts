/** What `board_a_flash` does: checks the image, finds the board, and writes. */
import type { DeviceGuard } from '@sluice/hardware'
import { AppError, type Host, sha256Hex, type ToolContext } from '@sluice/sdk'
import type { Device, Devices } from '../devices.ts'
import { findBootVolume, type Mounts } from '../flash/boot-volume.ts'
import { BOARD_ID, flashUf2, IMAGE_BYTES_MAX, noBoardA, uf2Target } from '../flash/flash-uf2.ts'
import { parseUf2 } from '../flash/parse-uf2.ts'
import { imagePath, readImage } from '../flash/read-image.ts'

const TOOL = 'board_a_flash'
/** What it is called while it waits in its boot loader, where it has no serial number. */
const WAITING = 'board_a_boot'

export interface FlashBoardADeps {
  readonly host: Host
  readonly devices: Devices
  readonly guard: DeviceGuard
  readonly mounts: Mounts | undefined
}

export interface FlashBoardA {
  readonly confirm: boolean
  /** The alias. */
  readonly device?: string | undefined
  /** In the workspace. */
  readonly image?: string | undefined
}

export async function flashBoardA(
  { host, devices, guard, mounts }: FlashBoardADeps,
  { confirm, device: alias, image: path }: FlashBoardA,
  context: ToolContext,
): Promise<string> {
  const { signal } = context
  if (!confirm) throw new AppError('invalid_request', 'Nothing was flashed: confirm must be true, for what is on the board is lost')
  const image = await imageFrom(host, path)
  parseUf2(image, uf2Target())
  await devices.ready(signal)
  const chosen = boardA(devices, alias)
  const said: string[] = []
  const write = { image: path ?? 'default', bytes: image.length, sha256: sha256Hex(image) }
  const deps = { clock: host.clock, devices, ...(mounts && { mounts }) }
  const { device: back, bytes } = await guard.use({ device: chosen?.alias ?? WAITING, tool: TOOL, context, write }, () =>
    flashUf2(deps, { device: chosen, image, signal, say: (line) => said.push(line) }),
  )
  return back
    ? `Flashed ${bytes} bytes. ${back.alias} is back at ${back.path ?? 'its place'}.`
    : `Copied all ${bytes} bytes, but the board has not come back with a serial port: unplug it and plug it in anew; if it stays away, the image is not for it.`
}

/** Throws where no board is there to be flashed, neither a running one nor one that waits in its boot loader. */
export async function checkBoardA(
  { devices, mounts }: Pick<FlashBoardADeps, 'devices' | 'mounts'>,
  alias: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  await devices.ready(signal)
  const running = boardA(devices, alias)
  if (!running?.connected && !(await findBootVolume(BOARD_ID, mounts))) throw noBoardA()
}

/** One that runs; undefined: none does, so one that waits in its boot loader is meant. Throws as `Devices.pick`. */
function boardA(devices: Devices, alias: string | undefined): Device | undefined {
  const isBoardA = ({ board, connected, transport }: Device) => connected && transport === 'serial' && board?.family === 'board_a'
  if (alias === undefined) return devices.all().some(isBoardA) ? devices.pick(undefined, isBoardA) : undefined
  const chosen = devices.pick(alias)
  if (chosen.transport !== 'serial' || chosen.board?.family !== 'board_a')
    throw new AppError('invalid_request', `${alias} is no board_a: ${TOOL} writes UF2 images to board_a only`)
  return chosen
}

async function imageFrom({ workspace, dataDir }: Pick<Host, 'workspace' | 'dataDir'>, path: string | undefined): Promise<Uint8Array> {
  if (path !== undefined) return workspace.read(path, { bytesMax: IMAGE_BYTES_MAX })
  const kept = imagePath(dataDir, 'board_a', 'uf2')
  return readImage(kept, IMAGE_BYTES_MAX).catch((error: unknown) => {
    if (!(error instanceof AppError) || error.code !== 'not_found') throw error
    throw new AppError(
      'not_found',
      `No image is given, and there is none at ${kept}: get MicroPython for RP2040 as .uf2 from https://micropython.org/download/RPI_PICO/`,
    )
  })
}
