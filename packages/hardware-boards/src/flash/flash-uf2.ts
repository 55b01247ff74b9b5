/** Flashes board_a: reboots it into its boot loader where it can, copies the image to its volume, waits until it is back. */
import { BOARDS, type Board } from '@sluice/hardware'
import { AppError, type Clock } from '@sluice/sdk'
import type { Device, Devices } from '../devices.ts'
import { lastLine, withRepl } from '../repl/repl.ts'
import { type BootVolume, findBootVolume, type Mounts } from './boot-volume.ts'
import { copyImage } from './copy-image.ts'
import { FAMILY_RP2040, parseUf2, type Uf2Target, uf2BytesMax } from './parse-uf2.ts'

export const BOARD_ID = 'RPI-RP2'
const LEAVE_MS_MAX = 3000
const VOLUME_MS_MAX = 15_000
const VOLUME_LOOK_MS = 500
export const BACK_MS_MAX = 20_000

export const MANUAL =
  'hold its BOOTSEL button while you plug it in, and make sure that its volume RPI-RP2 is mounted (udisksctl mount -b /dev/disk/by-label/RPI-RP2)'

export const noBoardA = (): AppError => new AppError('not_found', `No board_a is connected: ${MANUAL}`)

export interface FlashDeps {
  readonly clock: Clock
  readonly devices: Devices
  readonly mounts?: Mounts
}

export interface FlashOptions {
  /** The board that runs now, and is to be flashed; undefined: one that waits in its boot loader. */
  readonly device: Device | undefined
  readonly image: Uint8Array
  readonly signal: AbortSignal
  /** One line about what happens now. */
  readonly say: (line: string) => void
  /** Called when the image was found good, before anything is done to the board. */
  readonly before?: () => Promise<void>
}

/** What images for it have to keep to. */
export function uf2Target(board: Board | undefined = BOARDS.find(({ name }) => name === 'board_a')): Uf2Target {
  const flash = board?.memory.find(({ name }) => name === 'Flash')
  if (!flash) throw new TypeError('board_a has flash')
  return { family: FAMILY_RP2040, flash }
}

export const IMAGE_BYTES_MAX = uf2BytesMax(uf2Target())

export interface Flashed {
  /** The board that came back; undefined: it has not, within the time. */
  readonly device: Device | undefined
  readonly bytes: number
}

/**
 * Throws `invalid_request` for an image that is not for it, before anything is done; `not_found` when no boot volume is
 * there; `conflict` when there are several; `unavailable` when the image cannot be copied; `aborted`.
 */
export async function flashUf2(deps: FlashDeps, { device, image, signal, say, before }: FlashOptions): Promise<Flashed> {
  const { bytes } = parseUf2(image, uf2Target())
  await before?.()
  const running = new Set(deps.devices.all().flatMap(({ alias, connected }) => (connected ? [alias] : [])))
  const volume = await bootVolume(deps, device, { signal, say })
  say(`Copying ${image.length} bytes to ${volume.folder}`)
  await copyImage(volume, image, { signal, onProgress: percentOf(image.length, say) })
  say('Waiting for the board to come back')
  return { device: await back(deps, device, running, signal), bytes }
}

async function bootVolume(
  { clock, devices, mounts }: FlashDeps,
  device: Device | undefined,
  { signal, say }: Pick<FlashOptions, 'signal' | 'say'>,
): Promise<BootVolume> {
  const there = await findBootVolume(BOARD_ID, mounts)
  if (there && device?.connected) {
    const both = `A board waits in its boot loader at ${there.folder}, and ${device.alias} is running`
    throw new AppError('conflict', `${both}: unplug the one that is not meant`)
  }
  if (there) return there
  if (!device?.connected) throw noBoardA()
  say(`Rebooting ${device.alias} into its boot loader`)
  await rebootToLoader({ clock, devices }, device, signal)
  const untilMs = clock.monotonicMs() + VOLUME_MS_MAX
  while (clock.monotonicMs() < untilMs) {
    const volume = await findBootVolume(BOARD_ID, mounts)
    if (volume) return volume
    await clock.sleep(VOLUME_LOOK_MS, signal)
    if (signal.aborted) throw new AppError('aborted', 'Flashing was aborted before anything was written; unplug the board to start it')
  }
  throw new AppError('not_found', `${device.alias} is in its boot loader, but its volume is not mounted: ${MANUAL}`)
}

/** It goes away in the middle of the call. Throws `upstream` for a board that cannot, with its own words. */
async function rebootToLoader({ clock, devices }: FlashDeps, { alias }: Device, signal: AbortSignal): Promise<void> {
  let told = false
  let refusal = ''
  try {
    await devices.withPort(alias, signal, (port) =>
      withRepl(port, { name: alias, clock, signal }, async (repl) => {
        told = true
        const { stderr, late } = await repl.run('import machine\nmachine.bootloader()', { timeoutMs: LEAVE_MS_MAX })
        if (!late) refusal = stderr
      }),
    )
  } catch (error) {
    if (!told || signal.aborted) throw error
  }
  if (refusal !== '') throw new AppError('upstream', `${alias} does not go into its boot loader (${lastLine(refusal)}): ${MANUAL}`)
}

/** One that was not there before, where it was in its boot loader from the start. */
async function back(
  { clock, devices }: FlashDeps,
  device: Device | undefined,
  running: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<Device | undefined> {
  try {
    if (device) return await devices.comeBack(device.alias, BACK_MS_MAX, signal)
    const untilMs = clock.monotonicMs() + BACK_MS_MAX
    while (clock.monotonicMs() < untilMs) {
      const came = (await devices.discover(signal)).find(
        ({ alias, connected, board }) => connected && board?.family === 'board_a' && !running.has(alias),
      )
      if (came) return came
      await clock.sleep(VOLUME_LOOK_MS, signal)
    }
    return undefined
  } catch (error) {
    if (error instanceof AppError && error.code === 'upstream_timeout') return undefined
    throw error
  }
}

/** Every tenth part is told. */
function percentOf(total: number, say: (line: string) => void): (bytes: number) => void {
  let told = 0
  return (bytes) => {
    const tenth = Math.floor((bytes / total) * 10)
    if (tenth > told) say(`${tenth * 10} %`)
    told = Math.max(told, tenth)
  }
}
