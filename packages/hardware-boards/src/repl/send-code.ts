/**
 * Sends code to the raw REPL: in raw-paste mode, which has flow control, or in small pieces when the board does not have that
 * mode. The board then runs the code.
 */
import { AppError } from '@sluice/sdk'
import type { ReplLine, Wait } from './repl-line.ts'

const PIECE_BYTES = 256
/** The time for a board without flow control to read a piece from its buffer. */
const PIECE_PAUSE_MS = 10
const END = 0x04
const MORE = 0x01
const WINDOW_BYTES_MAX = 65_535

/**
 * Resolves to whether the board has raw-paste mode, so that a board without it is not asked again. Throws `upstream` for an
 * answer that a REPL would not give, and `upstream_timeout` when the board does not answer.
 */
export async function sendCode(line: ReplLine, code: Uint8Array, hasRawPaste: boolean, wait: Wait): Promise<boolean> {
  const window = hasRawPaste ? await beginRawPaste(line, wait) : undefined
  if (window === undefined) {
    await sendPlain(line, code, wait)
    return false
  }
  await sendPasted(line, code, window, wait)
  return true
}

/** Resolves to the window in bytes, or to undefined when the board does not have the mode and stays in plain raw mode. */
async function beginRawPaste(line: ReplLine, wait: Wait): Promise<number | undefined> {
  await line.send('\x05A\x01', wait)
  const answer = (await line.take(2, wait))?.toString('latin1')
  if (answer === 'R\x01') {
    const size = await line.take(2, wait)
    const window = size?.readUInt16LE() ?? 0
    if (window === 0) throw silent(line)
    return window
  }
  if (answer === 'R\x00') return undefined
  // Older versions ignore the first byte, and take the last one as a request for raw mode.
  if (answer === 'ra') {
    const { isFound } = await line.until('\r\n>', wait)
    if (isFound) return undefined
  }
  throw answer === undefined ? silent(line) : unexpected(line)
}

async function sendPasted(line: ReplLine, code: Uint8Array, window: number, wait: Wait): Promise<void> {
  let left = window
  for (let at = 0; at < code.length; ) {
    while (left === 0 || line.unread > 0) {
      const [answer] = (await line.take(1, wait)) ?? []
      if (answer === END) {
        // The board can take no more. It runs the code that it has, and its output shows the error.
        await line.send(Buffer.of(END), wait)
        return
      }
      if (answer === undefined) throw silent(line)
      if (answer !== MORE) throw unexpected(line)
      left = Math.min(left + window, WINDOW_BYTES_MAX)
    }
    const piece = code.subarray(at, at + left)
    await line.send(piece, wait)
    at += piece.length
    left -= piece.length
  }
  await line.send(Buffer.of(END), wait)
  for (;;) {
    const [answer] = (await line.take(1, wait)) ?? []
    if (answer === END) return
    if (answer === undefined) throw silent(line)
    if (answer !== MORE) throw unexpected(line)
  }
}

async function sendPlain(line: ReplLine, code: Uint8Array, wait: Wait): Promise<void> {
  for (let at = 0; at < code.length; at += PIECE_BYTES) {
    if (at > 0) await line.clock.sleep(PIECE_PAUSE_MS, wait.signal)
    await line.send(code.subarray(at, at + PIECE_BYTES), wait)
  }
  await line.send(Buffer.of(END), wait)
  const answer = (await line.take(2, wait))?.toString('latin1')
  if (answer !== 'OK') throw answer === undefined ? silent(line) : unexpected(line)
}

const silent = ({ name }: ReplLine): AppError => new AppError('upstream_timeout', `${name} stopped answering while code was sent to it`)
const unexpected = ({ name }: ReplLine): AppError =>
  new AppError('upstream', `${name} sent an answer that a MicroPython REPL would not give`)
