/** The configured boards. Some are present without a scan, others wait until a port is found for them. */
import { type Board, type BoardEntry, boardNamed, THIS_MACHINE } from '@sluice/hardware'
import type { Device } from '../devices.ts'
import type { Identity } from './aliases.ts'
import { UNKNOWN_FAMILY } from './find-boards.ts'

export interface Entry {
  readonly identity: Identity
  readonly family: string
  readonly board: Board | undefined
  /** The board's name in the configuration. */
  readonly name: string
  readonly transport: Device['transport']
  /** Null when the entry matches the board at any port. */
  readonly path: string | null
  readonly baud: number
}

/** Returns the entries of the configuration. Equal entries are numbered by their order. */
export function entriesOf(boards: readonly BoardEntry[]): Entry[] {
  const counts = new Map<string, number>()
  return boards.map(({ board: name, transport, path, baud }) => {
    const place = `entry:${transport}:${name}:${path ?? ''}`
    const count = counts.get(place) ?? 0
    counts.set(place, count + 1)
    const board = boardNamed(name)
    const family = board?.family ?? (transport === 'native' ? THIS_MACHINE : UNKNOWN_FAMILY)
    const where = transport === 'bridge' ? (path ?? DEFAULT_BRIDGE) : transport === 'serial' ? (path ?? null) : null
    return { identity: count === 0 ? place : `${place}#${count}`, family, board, name, transport, path: where, baud }
  })
}

/** The address at which the bridge of a board listens unless configured otherwise. */
const DEFAULT_BRIDGE = '127.0.0.1:9999'
