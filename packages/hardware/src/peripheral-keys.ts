/** The keys of `[peripherals]` (§2.6) that several features read: one schema object each, so that all of them mean the same. */
import { whole } from '@sluice/sdk'
import * as v from 'valibot'
import { BOARD_NAMES, unknownBoard } from './board-name.ts'

const PATH_CHARS_MAX = 255

const boardEntry = v.strictObject({
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

export type BoardEntry = v.InferOutput<typeof boardEntry>

export const peripheralKeys = {
  enabled: v.optional(v.pipe(v.boolean(), v.description('Whether the configured boards are used')), false),
  boards: v.optional(v.pipe(v.array(boardEntry), v.maxLength(64), v.description('Boards that are there, found or not')), []),
  lease_secs: v.optional(v.pipe(whole(1, 3600), v.description('How long a device stays with a client after its last call')), 30),
  pin_reservation_secs: v.optional(
    v.pipe(whole(0, 604_800), v.description('How long a pin that a client has written is closed to the others; 0: not at all')),
    3600,
  ),
} as const
