/** Flashes a board_a: reboots it into its boot loader if possible, copies the image to its volume, and waits until it is back. */
import { BOARDS, type Board } from '@sluice/hardware'
import { AppError, type Clock } from '@sluice/sdk'
import type { Device, Devices } from '../devices.ts'
import { lastLine, withRepl } from '../repl/repl.ts'
import { type BootVolume, copyImage, findBootVolume, type Mounts } from './boot-volume.ts'
import { FAMILY_RP2040, parseUf2, type Uf2Target, uf2BytesMax } from './parse-uf2.ts'

export const BOARD_ID = 'RPI-RP2'
const LEAVE_MS_MAX = 3000
const VOLUME_MS_MAX = 15_000
const VOLUME_POLL_MS = 500
export const BACK_MS_MAX = 20_000

export const MANUAL =
  'hold its BOOTSEL button while you plug it in, and make sure that its volume RPI-RP2 is mounted (udisksctl mount -b /dev/disk/by-label/RPI-RP2)'

export const noBoardA = (): AppError => new AppError('not_found', `No board_a is connected: ${MANUAL}`)

/** The parts of this machine that flashing uses. */
export interface FlashMachine {
  readonly clock: Clock
  readonly devices: Devices
  /** The mounts of this machine unless given. */
  readonly mounts?: Mounts | undefined
}

export interface FlashJob {
  /** The running board to flash; undefined for a board that already waits in its boot loader. */
  readonly device: Device | undefined
  readonly image: Uint8Array
  readonly signal: AbortSignal
  /** Called with one line for each step. */
  readonly report: (line: string) => void
  /** Called after the image was checked and before the board is touched. */
  readonly before?: () => Promise<void>
}

/** Returns the family and the flash that an image for the board must match. */
export function uf2Target(board: Board | undefined = BOARDS.find(({ name }) => name === 'board_a')): Uf2Target {
  const flash = board?.memory.find(({ name }) => name === 'Flash')
  if (!flash) throw new TypeError('board_a has flash')
  return { family: FAMILY_RP2040, flash }
}

export const IMAGE_BYTES_MAX = uf2BytesMax(uf2Target())

export interface Flashed {
  /** The board that reconnected; undefined when none did in time. */
  readonly device: Device | undefined
  readonly bytes: number
}

/**
 * Throws `invalid_request` for an image of another board, before the board is touched; `not_found` without a boot
 * volume, `conflict` with several, `unavailable` when the image cannot be copied, and `aborted`.
 */
export async function flashUf2(machine: FlashMachine, job: FlashJob): Promise<Flashed> {
  const { image, signal, report } = job
  const { bytes } = parseUf2(image, uf2Target())
  await job.before?.()
  const running = new Set(machine.devices.all().flatMap(({ alias, connected }) => (connected ? [alias] : [])))
  const volume = await bootVolume(machine, job)
  report(`Copying ${image.length} bytes to ${volume.folder}`)
  await copyImage(volume, image, signal, percentReporter(image.length, report))
  report('Waiting for the board to come back')
  return { device: await awaitBack(machine, job.device, running, signal), bytes }
}

async function bootVolume({ clock, devices, mounts }: FlashMachine, { device, signal, report }: FlashJob): Promise<BootVolume> {
  const existing = await findBootVolume(BOARD_ID, mounts)
  if (existing && device?.connected) {
    const both = `A board waits in its boot loader at ${existing.folder}, and ${device.alias} is running`
    throw new AppError('conflict', `${both}: unplug the one that you do not want to flash`)
  }
  if (existing) return existing
  if (!device?.connected) throw noBoardA()
  report(`Rebooting ${device.alias} into its boot loader`)
  await rebootToLoader({ clock, devices }, device, signal)
  const untilMs = clock.monotonicMs() + VOLUME_MS_MAX
  while (clock.monotonicMs() < untilMs) {
    const volume = await findBootVolume(BOARD_ID, mounts)
    if (volume) return volume
    await clock.sleep(VOLUME_POLL_MS, signal)
    if (signal.aborted) throw new AppError('aborted', 'Flashing was aborted before anything was written; replug the board to start it')
  }
  throw new AppError('not_found', `${device.alias} is in its boot loader, but its volume is not mounted: ${MANUAL}`)
}

/** The board disconnects in the middle of the call. Throws `upstream` with the board's own message when it cannot reboot. */
async function rebootToLoader({ clock, devices }: FlashMachine, { alias }: Device, signal: AbortSignal): Promise<void> {
  let hasReachedRepl = false
  let refusal = ''
  try {
    await devices.withPort(alias, signal, (port) =>
      withRepl(port, { name: alias, clock, signal }, async (repl) => {
        hasReachedRepl = true
        const { stderr, isLate } = await repl.run('import machine\nmachine.bootloader()', { timeoutMs: LEAVE_MS_MAX })
        if (!isLate) refusal = stderr
      }),
    )
  } catch (error) {
    if (!hasReachedRepl || signal.aborted) throw error
  }
  if (refusal !== '') throw new AppError('upstream', `${alias} does not reboot into its boot loader (${lastLine(refusal)}): ${MANUAL}`)
}

/** Waits for `device`, or without one for a board_a that was not running before. */
async function awaitBack(
  { clock, devices }: FlashMachine,
  device: Device | undefined,
  running: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<Device | undefined> {
  try {
    if (device) return await devices.comeBack(device.alias, BACK_MS_MAX, signal)
    const untilMs = clock.monotonicMs() + BACK_MS_MAX
    while (clock.monotonicMs() < untilMs) {
      const found = (await devices.discover(signal)).find(
        ({ alias, connected, board }) => connected && board?.family === 'board_a' && !running.has(alias),
      )
      if (found) return found
      await clock.sleep(VOLUME_POLL_MS, signal)
    }
    return undefined
  } catch (error) {
    if (error instanceof AppError && error.code === 'upstream_timeout') return undefined
    throw error
  }
}

/** Reports the progress at every tenth. */
function percentReporter(total: number, report: (line: string) => void): (bytes: number) => void {
  let reported = 0
  return (bytes) => {
    const tenth = Math.floor((bytes / total) * 10)
    if (tenth > reported) report(`${tenth * 10} %`)
    reported = Math.max(reported, tenth)
  }
}
