/** The built daemon with boards on an emulated USB bus. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, ROOT, run, scratch, startDaemon } from '../../daemons/bundle.ts'
import { createUsbBoard, type UsbBoardIdentity, usbBoardModules } from '../../vm/devices/usb-board.ts'
import { type VmTestContext, vmCase } from '../../vm/vm-case.ts'

const A: UsbBoardIdentity = { vendor: '2e8a', product: '0005', serialNumber: 'E66058388351' }
const B: UsbBoardIdentity = { vendor: '2341', product: '0043', serialNumber: '75735303331' }
const CONFIG = '[provider]\nkind = "offline"\n'
/** Set only in the guest, because the host imports this file too. */
let folder: ReturnType<typeof scratch> | undefined
const dataDir = (): string => {
  folder ??= scratch(CONFIG)
  return folder.dir
}

interface Discovered {
  readonly devices: readonly { readonly alias: string; readonly connected: boolean; readonly path: string | null }[]
}

/** One look takes at most two seconds, which may be too short for an emulated machine; so look several times. */
const LOOKS_MAX = 4

async function discover(): Promise<readonly string[]> {
  for (let look = 1; ; look++) {
    const boards = await discoverOnce()
    if (boards.length > 0 || look === LOOKS_MAX) return boards
  }
}

async function discoverOnce(): Promise<readonly string[]> {
  const { code, stdout, stderr } = await run('full', ['hardware', 'discover', '--json', '--data-dir', dataDir()])
  assert.equal(code, 0, stderr)
  const { devices } = JSON.parse(stdout) as Discovered
  return devices.filter(({ connected }) => connected).map(({ alias, path }) => `${alias} ${path}`)
}

async function daemon({ after }: VmTestContext) {
  const running = await startDaemon('full', dataDir())
  after(async () => {
    running.kill('SIGTERM')
    assert.equal(await running.exited, 0)
  })
  return running
}

export default vmCase({
  modules: usbBoardModules(2),
  udev: true,
  skipReason() {
    const report = join(ROOT, 'dist/full/bundle-report.json')
    if (!existsSync(report)) return 'the full profile is not built: npm run build:full'
    return readFileSync(report, 'utf8').includes('hardware-boards') ? undefined : 'the full profile was built without boards'
  },
  tests: {
    '`hardware discover` lists plugged boards next to a running daemon': async (context) => {
      for (const identity of [B, A]) await (await createUsbBoard(identity)).plug()
      const running = await daemon(context)
      assert.deepEqual(await discover(), ['board_a0 /dev/ttyACM1', 'board_b0 /dev/ttyACM0'])
      await eventually(
        async () => running.stdout() + running.stderr(),
        (log) => log.includes('board_a0') && log.includes('board_b0'),
      )
    },
    'boards keep their names after a restart of the daemon': async (context) => {
      await daemon(context)
      assert.deepEqual(await discover(), ['board_a0 /dev/ttyACM1', 'board_b0 /dev/ttyACM0'])
    },
  },
})
