/** `board_a_flash` (§2.7 rule 4): writes a UF2 image, such as MicroPython itself, to a board_a. */
import type { DeviceGuard } from '@sluice/hardware'
import { AppError, defineTool, type Host, sha256Hex } from '@sluice/sdk'
import * as v from 'valibot'
import type { Device, Devices } from '../devices.ts'
import type { Mounts } from '../flash/boot-volume.ts'
import { flashUf2, IMAGE_BYTES_MAX, uf2Target } from '../flash/flash-uf2.ts'
import { parseUf2 } from '../flash/parse-uf2.ts'
import { imagePath, readImage } from '../flash/read-image.ts'
import { device } from './pins.ts'

const TOOL = 'board_a_flash'
const PATH_CHARS_MAX = 1024
/** What it is called while it waits in its boot loader, where it has no serial number. */
const WAITING = 'board_a_boot'

export const boardAFlash = (host: Host, devices: Devices, guard: DeviceGuard, mounts?: Mounts) =>
  defineTool({
    name: TOOL,
    description:
      'Writes a UF2 image, such as MicroPython, to a board_a, over what is on it. A running MicroPython board is rebooted into its boot loader; any other has to be plugged in with its BOOTSEL button held.',
    input: v.object({
      confirm: v.pipe(v.boolean(), v.description('Must be true: what is on the board is lost')),
      device,
      image: v.optional(
        v.pipe(
          v.string(),
          v.minLength(1),
          v.maxLength(PATH_CHARS_MAX),
          v.description('A .uf2 file in the workspace; default: the one the operator keeps'),
        ),
      ),
    }),
    risk: 'execute',
    alwaysAsks: true,
    async run({ confirm, device: alias, image: path }, context) {
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
    },
  })

/** One that runs; undefined: none does, so one that waits in its boot loader is meant. Throws as `Devices.pick`. */
export function boardA(devices: Devices, alias: string | undefined): Device | undefined {
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
