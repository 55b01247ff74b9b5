/** Finds the boards among the ports of a scan, and gives each one its identity. */
import { type Board, type BoardFamily, boardNamed, boardOfUsb, FAMILY_BY_VENDOR } from '@sluice/hardware'
import type { UsbIdentity } from '../devices.ts'
import type { Identity } from './aliases.ts'
import type { SeenPort } from './usb.ts'

export interface FoundBoard {
  readonly identity: Identity
  /** The alias without its number. */
  readonly family: string
  readonly board: Board | undefined
  readonly path: string
  /** The path by which an entry of the configuration may name the port. */
  readonly entryPath: string
  readonly usb: UsbIdentity | null
  readonly location: string | null
}

/** Vendors of USB-to-serial bridges. Any board may be behind such a bridge. */
const UART_VENDORS: ReadonlySet<string> = new Set(['10c4', '1a86', '0403', '067b'])

/** The family of a board that is not in the table. */
export const UNKNOWN_FAMILY = 'device'

/**
 * Returns the boards of a known USB product or vendor, and the ports in `named`: the boards that the configuration or the
 * firmware names, by path. A device with several ports is represented by the first.
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
    const family: BoardFamily | typeof UNKNOWN_FAMILY = board?.family ?? familyByVendor ?? UNKNOWN_FAMILY
    // Cheap copies of a board share one serial number, so only the first is identified by it.
    const identity = found.has(identityOf(port)) ? identityByPlace(port) : identityOf(port)
    found.set(identity, { identity, family, board, path: port.path, entryPath: port.path, usb: port.usb, location: port.location })
  }
  return [...found.values()]
}

/** True when a port may be asked for its firmware. A USB device has identified itself, and may be something else than a board. */
export const mayBeAsked = ({ usb }: SeenPort): boolean => usb === null

const placeOf = ({ location, path }: SeenPort): string => location ?? path

function identityOf(port: SeenPort): Identity {
  const { usb, path } = port
  if (!usb) return `port:${path}`
  return usb.serialNumber === null ? identityByPlace(port) : `usb:${usb.vendor}:${usb.product}:${usb.serialNumber}`
}

const identityByPlace = (port: SeenPort): Identity => `usb:${port.usb?.vendor}:${port.usb?.product}@${placeOf(port)}`
