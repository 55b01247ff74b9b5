/** The keys of `[peripherals]` (§2.6) that several features read: one schema object each, so that all of them mean the same. */
import { whole } from '@sluice/sdk'
import * as v from 'valibot'
import { BOARD_NAMES, THIS_MACHINE, unknownBoard } from './board-name.ts'
import { bridgeAddress } from './bridge-address.ts'
import { isDevicePath } from './device-path.ts'

const PATH_CHARS_MAX = 255

const fields = v.strictObject({
  board: v.pipe(
    v.picklist(BOARD_NAMES, ({ input }) => unknownBoard(String(input))),
    v.description('What it is; `sbc` for this machine itself: see `sluice hardware discover`'),
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

/** What keeps a board from ever being reached as it is written. */
function problemOf({ board, transport, path }: v.InferOutput<typeof fields>): string | undefined {
  if ((board === THIS_MACHINE) !== (transport === 'native')) return `${THIS_MACHINE} and the transport native belong together`
  if (path === undefined) return undefined
  if (transport === 'serial' && !isDevicePath(path, 'serial'))
    return 'its path is no serial port, such as /dev/ttyACM0, /dev/ttyUSB0 or COM3'
  if (transport === 'bridge' && !bridgeAddress(path)) return 'its path is no `host:port`, such as 127.0.0.1:9999'
  return undefined
}

const boardEntry = v.pipe(
  fields,
  v.rawCheck(({ dataset, addIssue }) => {
    const message = dataset.typed ? problemOf(dataset.value) : undefined
    if (message !== undefined) addIssue({ message })
  }),
)

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
