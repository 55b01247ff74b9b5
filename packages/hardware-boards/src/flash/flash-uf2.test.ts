/** Flashing with folders in place of volumes: finding the boot volume, copying, and waiting for the board. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BOARDS } from '@sluice/hardware'
import { AppError } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Device, Devices } from '../devices.ts'
import { drive } from '../repl/testing/drive.ts'
import { type Executed, ReplBoard } from '../repl/testing/repl-board.ts'
import { findBootVolume, type Mounts } from './boot-volume.ts'
import { flashUf2 } from './flash-uf2.ts'
import { uf2Image } from './testing/uf2-image.ts'

const INFO = 'UF2 Bootloader v3.0\r\nModel: Raspberry Pi RP2\r\nBoard-ID: RPI-RP2\r\n'
const IMAGE = uf2Image(40)

let root = ''
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-boot-')))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const volume = (name: string, info = INFO): string => {
  const folder = join(root, name)
  mkdirSync(folder)
  writeFileSync(join(folder, 'INFO_UF2.TXT'), info)
  return folder
}
const mountsOf = (...folders: string[]): Mounts => ({ list: async () => folders, isMount: async () => true })
const boardA = BOARDS.find(({ name }) => name === 'board_a')
const device = (alias: string, connected = true): Device => ({
  alias,
  board: boardA,
  transport: 'serial',
  path: '/dev/ttyACM0',
  baud: 115_200,
  usb: null,
  connected,
})

interface Arranged {
  readonly mounts: Mounts
  readonly before?: Device[]
  readonly after?: Device[]
  readonly rebooting?: Executed
}

const arrange = ({ mounts, before = [], after = before, rebooting }: Arranged) => {
  const clock = testClock()
  const board = new ReplBoard({
    execute: (code) => {
      if (!code.includes('machine.bootloader()')) return {}
      if (rebooting) return rebooting
      volume('appears')
      void board.unplug()
      return { hangs: true }
    },
  })
  const reported: string[] = []
  let reportedAtMs = 0
  const devices = {
    all: () => before,
    discover: async () => after,
    withPort: async (_alias: string, _signal: AbortSignal, work: (port: typeof board.port) => Promise<unknown>) => work(board.port),
    comeBack: async (alias: string) => {
      const back = after.find((known) => known.alias === alias && known.connected)
      if (!back) throw new AppError('upstream_timeout', 'It did not come back')
      return back
    },
  } as unknown as Devices
  const report = (line: string): void => {
    reported.push(line)
    reportedAtMs = clock.monotonicMs()
  }
  const flash = (chosen: Device | undefined, image: Uint8Array = IMAGE, signal = new AbortController().signal) =>
    drive(clock, flashUf2({ clock, devices, mounts }, { device: chosen, image, signal, report }))
  return { board, reported, flash, sinceReportMs: () => clock.monotonicMs() - reportedAtMs }
}

describe('a boot volume', () => {
  test('is the one mount whose own file names the board', async () => {
    const mounts = mountsOf(volume('other', 'Board-ID: RP2350\r\n'), volume('boot'), join(root, 'nowhere'))
    expect(await findBootVolume('RPI-RP2', mounts)).toMatchObject({ folder: join(root, 'boot') })
  })

  test('needs a mount', async () => {
    const folder = volume('folder')
    expect(await findBootVolume('RPI-RP2', { list: async () => [folder], isMount: async () => false })).toBeUndefined()
    expect(
      await findBootVolume('RPI-RP2', { ...mountsOf(folder), isMount: (await import('./boot-volume.ts')).mountsHere.isMount }),
    ).toBeUndefined()
  })

  test('is not found behind a link, nor by a link to its file', async () => {
    symlinkSync(volume('real'), join(root, 'link'))
    const linked = join(root, 'linked')
    mkdirSync(linked)
    symlinkSync(join(root, 'real/INFO_UF2.TXT'), join(linked, 'INFO_UF2.TXT'))
    expect(await findBootVolume('RPI-RP2', mountsOf(join(root, 'link'), linked, `${root}/linked/../real`))).toBeUndefined()
  })

  test.each(['', 'Board-ID: RPI-RP2x', 'x Board-ID: RPI-RP2', 'RPI-RP2', `${'#'.repeat(5000)}\nBoard-ID: RPI-RP2\n`])(
    'is not recognised by %j',
    async (info) => {
      expect(await findBootVolume('RPI-RP2', mountsOf(volume('boot', info)))).toBeUndefined()
    },
  )

  test('is not chosen among several', async () => {
    await expect(findBootVolume('RPI-RP2', mountsOf(volume('one'), volume('two')))).rejects.toMatchObject({ code: 'conflict' })
  })
})

describe('flashing', () => {
  test('copies the image byte for byte and reports the board that came back', async () => {
    const { flash, reported } = arrange({ mounts: mountsOf(volume('boot')), after: [device('board_a0')] })
    expect(await flash(undefined)).toMatchObject({ device: { alias: 'board_a0' }, bytes: 40 * 256 })
    expect(readFileSync(join(root, 'boot/sluice.uf2')).equals(IMAGE)).toBe(true)
    expect(reported.at(-2)).toBe('100 %')
  })

  test('reboots a running board into its boot loader first', async () => {
    const { flash, board } = arrange({ mounts: mountsOf(join(root, 'appears')), before: [device('board_a0')] })
    expect(await flash(device('board_a0'))).toMatchObject({ device: { alias: 'board_a0' } })
    expect(board.codes).toEqual(['import machine\nmachine.bootloader()'])
    expect(readFileSync(join(root, 'appears/sluice.uf2')).equals(IMAGE)).toBe(true)
  })

  test('fails when a board does not reconnect within 20 s', async () => {
    const { flash, sinceReportMs } = arrange({ mounts: mountsOf(volume('boot')) })
    expect(await flash(undefined)).toEqual({ device: undefined, bytes: 40 * 256 })
    expect(sinceReportMs()).toBeGreaterThanOrEqual(20_000)
    expect(sinceReportMs()).toBeLessThan(22_000)
  })

  test('refuses an image for another chip before it touches the board', async () => {
    const { flash, board } = arrange({ mounts: mountsOf(volume('boot')), before: [device('board_a0')] })
    const image = uf2Image(3, () => ({ family: 1 }))
    await expect(flash(device('board_a0'), image)).rejects.toMatchObject({ code: 'invalid_request' })
    expect(board.codes).toEqual([])
    expect(readdirSync(join(root, 'boot'))).toEqual(['INFO_UF2.TXT'])
  })

  test('flashes neither when one board waits and another one runs', async () => {
    const { flash, board } = arrange({ mounts: mountsOf(volume('boot')), before: [device('board_a0')] })
    await expect(flash(device('board_a0'))).rejects.toMatchObject({ code: 'conflict' })
    expect(board.codes).toEqual([])
  })

  test('says how to start the boot loader when no board is connected', async () => {
    const { flash } = arrange({ mounts: mountsOf() })
    await expect(flash(undefined)).rejects.toMatchObject({ code: 'not_found', message: expect.stringContaining('BOOTSEL') })
  })

  test('neither follows nor replaces an existing file', async () => {
    symlinkSync('/etc/passwd', join(volume('boot'), 'sluice.uf2'))
    const { flash } = arrange({ mounts: mountsOf(join(root, 'boot')) })
    await expect(flash(undefined)).rejects.toMatchObject({ code: 'unavailable' })
  })

  test('stops before the next piece after an abort', async () => {
    const { flash } = arrange({ mounts: mountsOf(volume('boot')) })
    await expect(flash(undefined, IMAGE, AbortSignal.abort())).rejects.toMatchObject({ code: 'aborted' })
  })

  test('can be repeated after an abort', async () => {
    const { flash } = arrange({ mounts: mountsOf(volume('boot')), after: [device('board_a0')] })
    await expect(flash(undefined, IMAGE, AbortSignal.abort())).rejects.toMatchObject({ code: 'aborted' })
    expect(await flash(undefined)).toMatchObject({ device: { alias: 'board_a0' } })
    expect(readFileSync(join(root, 'boot/sluice.uf2')).equals(IMAGE)).toBe(true)
  })

  test('reports the error of a board that cannot reboot into its boot loader', async () => {
    const { flash, sinceReportMs } = arrange({
      mounts: mountsOf(),
      before: [device('board_a0')],
      rebooting: { stderr: "Traceback\r\nAttributeError: no attribute 'bootloader'\r\n" },
    })
    await expect(flash(device('board_a0'))).rejects.toMatchObject({
      code: 'upstream',
      message: expect.stringMatching(/AttributeError: no attribute 'bootloader'.*BOOTSEL/),
    })
    expect(sinceReportMs()).toBeLessThan(10_000)
  })
})
