/**
 * The keys of `[peripherals]` that several features read. Each feature uses these schema objects, so that a key means the same in
 * all of them.
 */
import { isIPv6 } from 'node:net'
import { whole } from '@sluice/sdk'
import * as v from 'valibot'
import { boardNamed, THIS_MACHINE, unknownBoard } from './boards.ts'
import { isDevicePath } from './device-path.ts'

const PATH_CHARS_MAX = 255

const fields = v.strictObject({
  board: v.pipe(
    v.string(),
    v.regex(/^[^\p{C}]{1,64}$/u, 'a name of at most 64 characters'),
    v.description(
      'Name of the board as listed by `sluice hardware discover`; `sbc` is this machine itself. Any other name is a board of an unknown kind',
    ),
  ),
  transport: v.optional(
    v.pipe(
      v.picklist(['serial', 'native', 'bridge', 'sim']),
      v.description('`serial`: a port; `native`: this machine; `bridge`: `host:port`; `sim`: simulated'),
    ),
    'serial',
  ),
  path: v.optional(
    v.pipe(v.string(), v.minLength(1), v.maxLength(PATH_CHARS_MAX), v.description('The serial port, or `host:port` of a bridge')),
  ),
  baud: v.optional(v.pipe(whole(300, 4_000_000), v.description('Bits a second')), 115_200),
})

const boardEntry = v.pipe(
  fields,
  v.check(
    ({ board, transport }) => (board === THIS_MACHINE ? transport === 'native' : transport !== 'native' || boardNamed(board) === undefined),
    `the board ${THIS_MACHINE} needs the transport native, and a known board cannot use it`,
  ),
)

export type BoardEntry = v.InferOutput<typeof boardEntry>

/** Returns why the board of an entry cannot be reached or recognized; undefined when nothing is wrong. The schema accepts such entries. */
export function boardEntryProblem({ board, transport, path }: BoardEntry): string | undefined {
  if (transport === 'serial' && path !== undefined && !isDevicePath(path, 'serial'))
    return `${JSON.stringify(path)} is not a serial port that Sluice opens; use one like /dev/ttyACM0, /dev/ttyUSB0, /dev/serial/by-id/… or COM3`
  if (transport === 'bridge' && path !== undefined && !bridgeAddress(path))
    return `${JSON.stringify(path)} is not a \`host:port\` address such as 127.0.0.1:9999`
  return transport === 'native' || boardNamed(board) ? undefined : unknownBoard(board)
}

const hasDistinctPorts = (boards: BoardEntry[]): boolean => {
  const ports = boards.flatMap(({ transport, path }) => (transport === 'serial' && path !== undefined ? [path] : []))
  return new Set(ports).size === ports.length
}

export const peripheralKeys = {
  enabled: v.optional(v.pipe(v.boolean(), v.description('Whether the configured boards are used')), false),
  boards: v.optional(
    v.pipe(
      v.array(boardEntry),
      v.maxLength(64),
      v.check(hasDistinctPorts, 'two boards use the same serial port'),
      v.description('Boards to use even when USB discovery does not find them'),
    ),
    [],
  ),
  lease_secs: v.optional(v.pipe(whole(1, 3600), v.description('How long a device stays with a client after its last call')), 30),
  pin_reservation_secs: v.optional(
    v.pipe(whole(0, 604_800), v.description('How long a pin that a client has written is closed to other clients; 0 turns this off')),
    3600,
  ),
} as const

const BRIDGE_ADDRESS = /^(?:\[([\da-f:.]+)\]|([a-z0-9](?:[\w.-]*[a-z0-9])?))(?::(\d{1,5}))?$/i
/** The port on which the bridge program of a board listens. */
const BRIDGE_PORT = 9999

export interface BridgeAddress {
  readonly host: string
  readonly port: number
}

/** Parses the address of a board's bridge: `host`, `host:port` or `[::1]:port`. Returns undefined for any other text. */
export function bridgeAddress(address: string): BridgeAddress | undefined {
  const [, bracketed, plain, digits = String(BRIDGE_PORT)] = BRIDGE_ADDRESS.exec(address) ?? []
  const host = bracketed ?? plain
  const port = Number(digits)
  if (host === undefined || port < 1 || port > 65_535 || (bracketed !== undefined && !isIPv6(bracketed))) return undefined
  return { host, port }
}
