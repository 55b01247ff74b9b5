/** From what USB shows to boards: each with what tells it from all others. */
import { type Board, type BoardFamily, boardNamed, boardOfUsb, FAMILY_BY_VENDOR } from '@sluice/hardware'
import type { UsbIdentity } from '../devices.ts'
import type { Identity } from './aliases.ts'
import type { SeenPort } from './usb.ts'

export interface FoundBoard {
  readonly identity: Identity
  /** The beginning of its alias. */
  readonly family: string
  readonly board: Board | undefined
  readonly path: string
  readonly usb: UsbIdentity | null
  readonly location: string | null
}

/** Makers of bridges between USB and a serial line: any board may be behind one. */
const UART_VENDORS: ReadonlySet<string> = new Set(['10c4', '1a86', '0403', '067b'])

/** Of a board of no known family. */
export const NO_FAMILY = 'device'

/**
 * Boards by what USB says of them: those of a known product or vendor. `named` are ports that are boards because the
 * configuration, or their firmware, says so: board by path. A device with several ports is its first.
 */
export function findBoards(ports: readonly SeenPort[], named: ReadonlyMap<string, string>): FoundBoard[] {
  const found = new Map<Identity, FoundBoard>()
  const places = new Set<string>()
  for (const port of ports) {
    const familyByVendor = port.usb ? FAMILY_BY_VENDOR[port.usb.vendor] : undefined
    const name = named.get(port.path)
    const byUsb = port.usb ? boardOfUsb(port.usb.vendor, port.usb.product) : undefined
    const byName = name === undefined ? undefined : boardNamed(name)
    const board = port.usb && UART_VENDORS.has(port.usb.vendor) ? (byName ?? byUsb) : (byUsb ?? byName)
    if (!board && !familyByVendor && name === undefined) continue
    const place = placeOf(port)
    if (places.has(place)) continue
    places.add(place)
    const family: BoardFamily | typeof NO_FAMILY = board?.family ?? familyByVendor ?? NO_FAMILY
    // Cheap copies of a board all have the same serial number: only the first can be told by it.
    const identity = found.has(identityOf(port)) ? identityByPlace(port) : identityOf(port)
    found.set(identity, { identity, family, board, path: port.path, usb: port.usb, location: port.location })
  }
  return [...found.values()]
}

/** Whether a port may be asked what it is: whoever is on USB has said so already, and what is no board is not written to. */
export const mayBeAsked = ({ usb }: SeenPort): boolean => usb === null

const placeOf = ({ location, path }: SeenPort): string => location ?? path

function identityOf(port: SeenPort): Identity {
  const { usb, path } = port
  if (!usb) return `port:${path}`
  return usb.serialNumber === null ? identityByPlace(port) : `usb:${usb.vendor}:${usb.product}:${usb.serialNumber}`
}

const identityByPlace = (port: SeenPort): Identity => `usb:${port.usb?.vendor}:${port.usb?.product}@${placeOf(port)}`
