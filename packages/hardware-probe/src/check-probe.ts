/** The findings for `sluice doctor`: whether a chip answers, and how to fix it when none does. */
import { AppError, errorText, type Finding } from '@sluice/sdk'
import { isConfigured, type ProbeConfig } from './config.ts'
import { defaultBoard, isLiveBoard, liveBoards } from './live-boards.ts'
import type { Probe } from './probe.ts'

const FIX = 'connect the board, start its server, or set `gdb`, `openocd_tcl` or `openocd` in [peripherals.probe]'

/** Reads the configured board, or else the first known one. A chip that does not answer is a failure only when it is configured. */
export async function checkProbe(
  probe: Probe,
  config: ProbeConfig,
  boards: readonly string[],
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const board = boards.some(isLiveBoard) ? defaultBoard(boards) : liveBoards[0]
  if (!board) return []
  try {
    const { chip, architecture, source, warning } = await probe.info(board, signal)
    const detail = `${chip}, ${architecture}, through ${source}`
    return [
      warning === undefined
        ? { status: 'ok', detail }
        : { status: 'warn', detail, fix: `${warning} Configure the board that is connected` },
    ]
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return [{ status: isConfigured(config) ? 'fail' : 'warn', detail: errorText(error), fix: FIX }]
  }
}
