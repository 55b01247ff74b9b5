/** The boards of the configuration: those that are there without being looked for, and those a port is given to. */
import { type Board, type BoardEntry, boardNamed, THIS_MACHINE } from '@sluice/hardware'
import type { Device } from '../devices.ts'
import type { Identity } from './aliases.ts'
import { NO_FAMILY } from './find-boards.ts'

export interface Entry {
  readonly identity: Identity
  readonly family: string
  readonly board: Board | undefined
  /** As in the configuration. */
  readonly name: string
  readonly transport: Device['transport']
  /** Null: wherever it is found. */
  readonly path: string | null
  readonly baud: number
}

/** Entries of the same board without a path are told by their order. */
export function entriesOf(boards: readonly BoardEntry[]): Entry[] {
  const counts = new Map<string, number>()
  return boards.map(({ board: name, transport, path, baud }) => {
    const place = `entry:${transport}:${name}:${path ?? ''}`
    const count = counts.get(place) ?? 0
    counts.set(place, count + 1)
    const board = boardNamed(name)
    const family = board?.family ?? (transport === 'native' ? THIS_MACHINE : NO_FAMILY)
    const where = transport === 'bridge' ? (path ?? DEFAULT_BRIDGE) : transport === 'serial' ? (path ?? null) : null
    return { identity: count === 0 ? place : `${place}#${count}`, family, board, name, transport, path: where, baud }
  })
}

/** Where the bridge of such a board listens on itself. */
const DEFAULT_BRIDGE = '127.0.0.1:9999'
