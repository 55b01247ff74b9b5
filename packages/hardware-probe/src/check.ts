/** For `sluice doctor`: whether a chip answers, and what to do where none does. */
import { AppError, errorText, type Finding } from '@sluice/sdk'
import type { ProbeConfig } from './config.ts'
import { liveBoards } from './live-boards.ts'
import { defaultBoard } from './memory-read.ts'
import type { Probe } from './probe.ts'
import { isConfigured } from './reader-of.ts'

const FIX = 'connect the board, start the server it is reached by, or set `gdb`, `openocd_tcl` or `openocd` in [peripherals.probe]'

/** Reads what it can of the configured board, else of the first that is known. It is a failure only of what is configured. */
export async function checkProbe(
  probe: Probe,
  config: ProbeConfig,
  boards: readonly string[],
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const board = boards.some((name) => liveBoards.some((live) => live.name === name)) ? defaultBoard(boards) : liveBoards[0]
  if (!board) return []
  try {
    const { chip, architecture, source, doubt } = await probe.info(board, signal)
    const detail = `${chip}, ${architecture}, through ${source}`
    return [doubt === undefined ? { status: 'ok', detail } : { status: 'warn', detail, fix: `${doubt} Name the board that is there` }]
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return [{ status: isConfigured(config) ? 'fail' : 'warn', detail: errorText(error), fix: FIX }]
  }
}
