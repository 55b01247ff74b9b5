/** A fake board behind a pseudo-terminal, which looks like a serial port of this machine. */
import type { DebianProgram } from '@sluice/qa/debian-program'
import { type SerialLine, startSerialLine } from '@sluice/qa/serial-line'
import type { Port } from '../devices.ts'
import { type FakeBoard, type FakeBoardOptions, fakeBoard } from './fake-board.ts'

export interface PtyBoard {
  readonly line: SerialLine
  readonly board: FakeBoard
}

export async function ptyBoard(socat: DebianProgram, options?: FakeBoardOptions): Promise<PtyBoard> {
  const line = await startSerialLine(socat)
  const far: Port = {
    write: line.write,
    onData: line.onData,
    onClose: () => () => undefined,
    signals: async () => undefined,
    close: line.unplug,
  }
  return { line, board: fakeBoard(far, options) }
}
