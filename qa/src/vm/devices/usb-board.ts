/** In the guest: USB serial boards (CDC ACM) with any identity, on a simulated USB controller. */
import { mkdir, readdir, readFile, realpath, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { eventually, exists, setAttribute, settle } from './guest-files.ts'

/** The identity that a board reports. */
export interface UsbBoardIdentity {
  /** Four hexadecimal digits. */
  readonly vendor: string
  readonly product: string
  /** Absent for a board without a serial number. */
  readonly serialNumber?: string
  readonly manufacturer?: string
  readonly productName?: string
}

/** A board that can be plugged and unplugged. */
export interface UsbBoard {
  /** The terminal at the board's end, for `openTerminal`: bytes written to it come out of the port. */
  readonly boardEnd: string
  /** Resolves to the port, `/dev/ttyACM<n>`, when udev knows it. */
  plug(): Promise<string>
  /** Resolves when the port is gone. */
  unplug(): Promise<void>
}

/** For `VmCase.modules`, together with `udev: true`. Each plugged board occupies one controller. */
export const usbBoardModules = (boards: number): readonly string[] => [`dummy_hcd num=${boards}`, 'libcomposite', 'usb_f_acm', 'cdc-acm']

const GADGETS = '/sys/kernel/config/usb_gadget'
const ENGLISH = '0x409'

/** Creates a board that is not plugged in yet. */
export async function createUsbBoard(identity: UsbBoardIdentity): Promise<UsbBoard> {
  const gadget = join(GADGETS, `board${(await readdir(GADGETS)).length}`)
  const strings = join(gadget, 'strings', ENGLISH)
  const config = join(gadget, 'configs/c.1')
  const acm = join(gadget, 'functions/acm.0')
  for (const folder of [gadget, strings, config, acm]) await mkdir(folder)
  await setAttribute(join(gadget, 'idVendor'), `0x${identity.vendor}`)
  await setAttribute(join(gadget, 'idProduct'), `0x${identity.product}`)
  await setAttribute(join(gadget, 'bDeviceClass'), '0x02')
  if (identity.manufacturer !== undefined) await setAttribute(join(strings, 'manufacturer'), identity.manufacturer)
  if (identity.productName !== undefined) await setAttribute(join(strings, 'product'), identity.productName)
  if (identity.serialNumber !== undefined) await setAttribute(join(strings, 'serialnumber'), identity.serialNumber)
  await symlink(acm, join(config, 'acm.0'))
  const boardEnd = `/dev/ttyGS${(await readFile(join(acm, 'port_num'), 'utf8')).trim()}`
  await eventually(boardEnd, async () => (await exists(boardEnd)) || undefined)
  const attached = join(gadget, 'UDC')
  return {
    boardEnd,
    async plug() {
      const controller = await freeController()
      await setAttribute(attached, controller)
      const port = await eventually('port', () => portAt(controller))
      await settle()
      return port
    },
    async unplug() {
      const controller = (await readFile(attached, 'utf8')).trim()
      await setAttribute(attached, '\n')
      await eventually('unplugging', async () => ((await portAt(controller)) === undefined ? true : undefined))
      await settle()
    },
  }
}

async function freeController(): Promise<string> {
  const taken = new Set<string>()
  for (const gadget of await readdir(GADGETS)) taken.add((await readFile(join(GADGETS, gadget, 'UDC'), 'utf8')).trim())
  const free = (await readdir('/sys/class/udc')).toSorted().find((name) => !taken.has(name))
  if (free === undefined) throw new Error('every USB controller has a board: pass a higher number to usbBoardModules()')
  return free
}

/** The port of a controller: `dummy_udc.1` is the board's side of `dummy_hcd.1`. */
async function portAt(controller: string): Promise<string | undefined> {
  for (const name of await readdir('/sys/class/tty')) {
    if (!name.startsWith('ttyACM')) continue
    const place = await realpath(join('/sys/class/tty', name)).catch(() => '')
    if (place.includes(`/${controller.replace('udc', 'hcd')}/`) && (await exists(join('/dev', name)))) return join('/dev', name)
  }
  return undefined
}
