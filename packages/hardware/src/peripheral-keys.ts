/** The keys of `[peripherals]` (§2.6) that several features read: one schema object each, so that all of them mean the same. */
import { whole } from '@sluice/sdk'
import * as v from 'valibot'
import { THIS_MACHINE, unknownBoard } from './board-name.ts'
import { boardNamed } from './boards.ts'
import { bridgeAddress } from './bridge-address.ts'
import { isDevicePath } from './device-path.ts'

const PATH_CHARS_MAX = 255

const fields = v.strictObject({
  board: v.pipe(
    v.string(),
    v.regex(/^[^\p{C}]{1,64}$/u, 'a name of at most 64 characters'),
    v.description('What it is; `sbc` for this machine itself: see `sluice hardware discover`. Any other name is a board of no known kind'),
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
    `${THIS_MACHINE} and the transport native belong together`,
  ),
)

/** Says what keeps a board from being reached or known as its entry is written; the entry itself is accepted. */
export function doubtOf({ board, transport, path }: BoardEntry): string | undefined {
  if (transport === 'serial' && path !== undefined && !isDevicePath(path, 'serial'))
    return `${JSON.stringify(path)} is no serial port that Sluice opens, such as /dev/ttyACM0, /dev/ttyUSB0 or COM3`
  if (transport === 'bridge' && path !== undefined && !bridgeAddress(path))
    return `${JSON.stringify(path)} is no \`host:port\`, such as 127.0.0.1:9999`
  return transport === 'native' || boardNamed(board) ? undefined : unknownBoard(board)
}

/** Each is a line of its own. */
const portsDiffer = (boards: BoardEntry[]): boolean => {
  const ports = boards.flatMap(({ transport, path }) => (transport === 'serial' && path !== undefined ? [path] : []))
  return new Set(ports).size === ports.length
}

export type BoardEntry = v.InferOutput<typeof boardEntry>

export const peripheralKeys = {
  enabled: v.optional(v.pipe(v.boolean(), v.description('Whether the configured boards are used')), false),
  boards: v.optional(
    v.pipe(
      v.array(boardEntry),
      v.maxLength(64),
      v.check(portsDiffer, 'two boards are at the same port'),
      v.description('Boards that are there, found or not'),
    ),
    [],
  ),
  lease_secs: v.optional(v.pipe(whole(1, 3600), v.description('How long a device stays with a client after its last call')), 30),
  pin_reservation_secs: v.optional(
    v.pipe(whole(0, 604_800), v.description('How long a pin that a client has written is closed to the others; 0: not at all')),
    3600,
  ),
} as const
