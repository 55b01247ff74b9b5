/**
 * Brings code to the raw REPL: by its raw-paste mode, which says how much it can take, or in small pieces where a board
 * does not have that. After it the board runs the code.
 */
import { AppError } from '@sluice/sdk'
import type { Wait } from './incoming.ts'
import { type Line, send } from './line.ts'

const PIECE_BYTES = 256
/** A board without flow control has this long to take a piece from its buffer. */
const PIECE_PAUSE_MS = 10
const END = 0x04
const MORE = 0x01
const WINDOW_BYTES_MAX = 65_535

/**
 * Throws `upstream` when the board answers something else than the REPL would, `upstream_timeout` when it does not answer.
 * Resolves to whether the board has raw-paste mode, so that one that has not is not asked again.
 */
export async function sendCode(line: Line, code: Uint8Array, rawPaste: boolean, wait: Wait): Promise<boolean> {
  const window = rawPaste ? await beginRawPaste(line, wait) : undefined
  if (window === undefined) {
    await sendPlain(line, code, wait)
    return false
  }
  await sendPasted(line, code, window, wait)
  return true
}

/** The window, in bytes; undefined: the board does not have it, and is in plain raw mode. */
async function beginRawPaste(line: Line, wait: Wait): Promise<number | undefined> {
  const { incoming } = line
  await send(line, '\x05A\x01', wait)
  const answer = (await incoming.take(2, wait))?.toString('latin1')
  if (answer === 'R\x01') {
    const size = await incoming.take(2, wait)
    const window = size?.readUInt16LE() ?? 0
    if (window === 0) throw silent(line)
    return window
  }
  if (answer === 'R\x00') return undefined
  // Older ones take the first byte for nothing and the last for another beginning.
  if (answer === 'ra') {
    const { found } = await incoming.until('\r\n>', wait)
    if (found) return undefined
  }
  throw answer === undefined ? silent(line) : confused(line)
}

async function sendPasted(line: Line, code: Uint8Array, window: number, wait: Wait): Promise<void> {
  const { incoming } = line
  let left = window
  for (let at = 0; at < code.length; ) {
    while (left === 0 || incoming.unread > 0) {
      const [said] = (await incoming.take(1, wait)) ?? []
      if (said === END) {
        // It cannot take more: what it has of the code is what it runs, and its answer says what is wrong.
        await send(line, Buffer.of(END), wait)
        return
      }
      if (said === undefined) throw silent(line)
      if (said !== MORE) throw confused(line)
      left = Math.min(left + window, WINDOW_BYTES_MAX)
    }
    const piece = code.subarray(at, at + left)
    await send(line, piece, wait)
    at += piece.length
    left -= piece.length
  }
  await send(line, Buffer.of(END), wait)
  for (;;) {
    const [said] = (await incoming.take(1, wait)) ?? []
    if (said === END) return
    if (said === undefined) throw silent(line)
    if (said !== MORE) throw confused(line)
  }
}

async function sendPlain(line: Line, code: Uint8Array, wait: Wait): Promise<void> {
  const { incoming, clock } = line
  for (let at = 0; at < code.length; at += PIECE_BYTES) {
    if (at > 0) await clock.sleep(PIECE_PAUSE_MS, wait.signal)
    await send(line, code.subarray(at, at + PIECE_BYTES), wait)
  }
  await send(line, Buffer.of(END), wait)
  const answer = (await incoming.take(2, wait))?.toString('latin1')
  if (answer !== 'OK') throw answer === undefined ? silent(line) : confused(line)
}

const silent = ({ name }: Line): AppError => new AppError('upstream_timeout', `${name} stopped answering while code was sent to it`)
const confused = ({ name }: Line): AppError => new AppError('upstream', `${name} answered something else than a MicroPython REPL does`)
