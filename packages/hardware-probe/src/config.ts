/** `probe` of `[peripherals]`: how the debug port of a chip is reached. */
import { type Board, peripheralKeys } from '@sluice/hardware'
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

const accessKeys = {
  gdb: v.optional(v.pipe(endpoint, v.description('A GDB server, `host:port`; it halts the chip for a moment'))),
  openocd_tcl: v.optional(v.pipe(endpoint, v.description('The TCL port of a running OpenOCD, `host:port`; its own default port is 6666'))),
  openocd: v.optional(
    v.pipe(
      words,
      v.description(
        'Arguments of an OpenOCD that is started for each reading, such as `["-f", "board/st_nucleo_f4.cfg"]`; defaults to the arguments of the board',
      ),
    ),
  ),
} as const
const ONE_ACCESS = 'only one of `gdb`, `openocd_tcl` and `openocd`'

/** How the chip of a board is reached: at most one of the keys is set. */
export type ProbeAccess = v.InferOutput<v.ObjectSchema<typeof accessKeys, undefined>>

const hasAccess = ({ gdb, openocd_tcl, openocd }: ProbeAccess): boolean => [gdb, openocd_tcl, openocd].some(Boolean)
const hasOneAccess = ({ gdb, openocd_tcl, openocd }: ProbeAccess): boolean => [gdb, openocd_tcl, openocd].filter(Boolean).length <= 1

const boardName = v.pipe(
  v.string(),
  v.check((name) => liveBoards.some((board) => board.name === name), LIVE_NAMES),
)

const probe = v.optional(
  v.pipe(
    v.object({
      ...accessKeys,
      boards: v.optional(
        v.pipe(
          v.record(boardName, v.pipe(v.object(accessKeys), v.check(hasOneAccess, ONE_ACCESS))),
          v.description('The same three keys for one board: `[peripherals.probe.boards.board_c1]`'),
        ),
        {},
      ),
      openocd_program: v.optional(
        v.pipe(v.string(), v.minLength(1), v.maxLength(TEXT_CHARS_MAX), v.description('The name or path of the program')),
        'openocd',
      ),
      openocd_network: v.optional(
        v.pipe(v.boolean(), v.description('Whether an OpenOCD that is started may use the network, for an adapter on the network')),
        false,
      ),
      timeout_secs: v.optional(v.pipe(whole(1, 120), v.description('The longest time of one reading')), 10),
    }),
    v.check((access) => hasOneAccess(access), ONE_ACCESS),
  ),
  {},
)

export type ProbeConfig = v.InferOutput<typeof probe>

const schema = v.object({ ...peripheralKeys, probe })

export type PeripheralsConfig = v.InferOutput<typeof schema>

export const peripheralsSection = { path: 'peripherals', schema } as const satisfies Section<typeof schema>

/** Returns how a board is reached: by its own keys if it has any, else by the common ones. */
export function accessTo(config: ProbeConfig, { name }: Board): ProbeAccess {
  const own = config.boards[name]
  return own && Object.keys(own).length > 0 ? own : config
}

/** Returns whether the operator configured how to reach a chip. */
export const isConfigured = (config: ProbeConfig): boolean => hasAccess(config) || Object.keys(config.boards).length > 0

/** The address of a server. */
export interface Endpoint {
  readonly host: string
  readonly port: number
}

/** Parses `host:port`, which the schema has validated. */
export const parseEndpoint = (text: string): Endpoint => ({
  host: text.slice(0, text.lastIndexOf(':')).replace(/^\[|\]$/g, ''),
  port: portOf(text),
})

function portOf(text: string): number {
  return Number(text.slice(text.lastIndexOf(':') + 1))
}
