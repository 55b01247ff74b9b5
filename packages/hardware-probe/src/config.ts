/** `probe` of `[peripherals]` (§2.6): how the debug port of a chip is reached. */
import { peripheralKeys } from '@sluice/hardware'
import { type Section, whole } from '@sluice/sdk'
import * as v from 'valibot'
import { LIVE_NAMES, liveBoards } from './live-boards.ts'

const TEXT_CHARS_MAX = 4096

const endpoint = v.pipe(
  v.string(),
  v.regex(/^(?:[\w.-]{1,253}|\[[0-9a-fA-F:.]{2,45}\]):\d{1,5}$/, '`host:port`, such as 127.0.0.1:3333'),
  v.check((text) => portOf(text) > 0 && portOf(text) <= 65_535, 'a port from 1 to 65535'),
)
const words = v.pipe(v.array(v.pipe(v.string(), v.minLength(1), v.maxLength(TEXT_CHARS_MAX))), v.minLength(1), v.maxLength(32))

const ways = {
  gdb: v.optional(v.pipe(endpoint, v.description('A GDB server, `host:port`: it halts the chip for a moment'))),
  openocd_tcl: v.optional(v.pipe(endpoint, v.description('The TCL port of an OpenOCD that runs, `host:port`; its own default is 6666'))),
  openocd: v.optional(
    v.pipe(
      words,
      v.description(
        'Arguments of an OpenOCD started for each reading, such as `["-f", "board/st_nucleo_f4.cfg"]`; default: those of the board',
      ),
    ),
  ),
} as const
const ONE_WAY = 'only one of `gdb`, `openocd_tcl` and `openocd`'
const isOneWay = ({ gdb, openocd_tcl, openocd }: Ways): boolean => [gdb, openocd_tcl, openocd].filter(Boolean).length <= 1

export type Ways = v.InferOutput<v.ObjectSchema<typeof ways, undefined>>

const boardName = v.pipe(
  v.string(),
  v.check((name) => liveBoards.some((board) => board.name === name), LIVE_NAMES),
)

const probe = v.optional(
  v.pipe(
    v.object({
      ...ways,
      boards: v.optional(
        v.pipe(
          v.record(boardName, v.pipe(v.object(ways), v.check(isOneWay, ONE_WAY))),
          v.description('The same three keys for one board: `[peripherals.probe.boards.board_c1]`'),
        ),
        {},
      ),
      openocd_program: v.optional(
        v.pipe(v.string(), v.minLength(1), v.maxLength(TEXT_CHARS_MAX), v.description('The program, or its path')),
        'openocd',
      ),
      openocd_network: v.optional(
        v.pipe(
          v.boolean(),
          v.description('Whether an OpenOCD that is started may use the network, as for an adapter that is reached by it'),
        ),
        false,
      ),
      timeout_secs: v.optional(v.pipe(whole(1, 120), v.description('Of one reading')), 10),
    }),
    v.check((ways) => isOneWay(ways), ONE_WAY),
  ),
  {},
)

export type ProbeConfig = v.InferOutput<typeof probe>

const schema = v.object({ ...peripheralKeys, probe })

export type PeripheralsConfig = v.InferOutput<typeof schema>

export const peripheralsSection = { path: 'peripherals', schema } as const satisfies Section<typeof schema>

/** Where a server listens. */
export interface Endpoint {
  readonly host: string
  readonly port: number
}

/** Of a text the schema has taken. */
export const parseEndpoint = (text: string): Endpoint => ({
  host: text.slice(0, text.lastIndexOf(':')).replace(/^\[|\]$/g, ''),
  port: portOf(text),
})

function portOf(text: string): number {
  return Number(text.slice(text.lastIndexOf(':') + 1))
}
