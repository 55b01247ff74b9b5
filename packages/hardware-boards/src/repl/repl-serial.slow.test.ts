/** The raw REPL over a real serial port: a pseudo-terminal with MicroPython's prompt behind it. */
import { systemClock } from '@sluice/kit'
import { findSocat, startSerialLine } from '@sluice/qa/serial-line'
import { describe, expect, test } from 'vitest'
import type { Port } from '../devices.ts'
import { openSerialPort } from '../transports/serial-port.ts'
import { readMain, writeMain } from './main-file.ts'
import { withRepl } from './repl.ts'
import { micropython } from './testing/micropython.ts'
import { ReplBoard } from './testing/repl-board.ts'

const [socat, python] = [await findSocat(), await micropython()]
const missing = 'missing' in socat ? socat.missing : python ? undefined : "MicroPython's WebAssembly package is not installed"
const title = missing === undefined ? 'over a serial port' : `over a serial port (skipped: ${missing})`

describe.skipIf(missing !== undefined)(title, () => {
  test.each(['yes', 'no'] as const)('runs code and reads back a written program (raw-paste mode: %s)', async (rawPaste) => {
    if ('missing' in socat) return
    const line = await startSerialLine(socat)
    const far: Port = { ...line, onClose: () => () => undefined, signals: async () => undefined, close: line.unplug }
    const board = new ReplBoard({ far, rawPaste, window: 128, program: true, execute: (code) => python?.execute(code) ?? {} })
    const signal = new AbortController().signal
    const port = await openSerialPort(line.path, 115_200, systemClock, signal)
    try {
      const program = Array.from({ length: 400 }, (_, index) => `print(${index}, 'ü\\x03\\x04')`).join('\n')
      const { result, wasRestarted } = await withRepl(port, { name: 'board_a0', clock: systemClock, signal }, async (repl) => {
        const { bytes } = await writeMain(repl, program)
        return { bytes, back: await readMain(repl), ran: await repl.run("print('ä' * 5000)") }
      })
      expect(result).toEqual({
        bytes: Buffer.byteLength(program),
        back: program,
        ran: { stdout: `${'ä'.repeat(5000)}\n`, stderr: '', dropped: 0, isLate: false },
      })
      expect(wasRestarted).toBe(true)
      expect(board).toMatchObject({ mode: 'running', softResets: 1 })
    } finally {
      await port.close()
      await line.unplug()
    }
  })
})
