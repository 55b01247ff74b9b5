/** Which way leads to a board's chip: its own, the one for all, or OpenOCD with the board's stock configuration. */
import type { Board } from '@sluice/hardware'
import type { Host } from '@sluice/sdk'
import type { ChipReader } from './chip-reader.ts'
import type { ProbeConfig } from './config.ts'
import { createGdbReader } from './gdb/gdb-reader.ts'
import { liveChipOf } from './live-boards.ts'
import { createRunReader } from './openocd/run-reader.ts'
import { createTclReader } from './openocd/tcl-reader.ts'

/** Makes a reader; nothing is connected or started before it reads. */
export function readerOf(host: Pick<Host, 'clock' | 'log' | 'spawn'>, config: ProbeConfig, board: Board): ChipReader {
  const { clock, log } = host
  const timeoutMs = config.timeout_secs * 1000
  const { gdb, openocd_tcl, openocd } = waysOf(config, board)
  if (gdb !== undefined) return createGdbReader({ server: gdb, timeoutMs, clock, log })
  if (openocd_tcl !== undefined) return createTclReader({ server: openocd_tcl, timeoutMs, clock })
  return createRunReader({
    program: config.openocd_program,
    args: openocd ?? liveChipOf(board)?.openocd ?? [],
    network: config.openocd_network,
    timeoutMs,
    spawn: (request) => host.spawn(request),
  })
}

function waysOf(config: ProbeConfig, { name }: Board): Pick<ProbeConfig, 'gdb' | 'openocd_tcl' | 'openocd'> {
  const own = config.boards[name]
  return own && Object.keys(own).length > 0 ? own : config
}

export const isConfigured = ({ gdb, openocd_tcl, openocd, boards }: ProbeConfig): boolean =>
  [gdb, openocd_tcl, openocd].some(Boolean) || Object.keys(boards).length > 0
