/** Interrupts the program on a board and brings its REPL into raw mode, which is meant for programs. */
import { AppError } from '@sluice/sdk'
import type { ReplLine, Wait } from './repl-line.ts'

/** A program may take time to end, or catch the first interrupt. */
const ATTEMPTS = 4
/**
 * The wait for the prompt after an interrupt. Raw mode is requested even when no prompt arrives, because it may have been
 * lost.
 */
const PROMPT_MS = 700
const RAW_MS = 1500
const RAW = 'raw REPL; CTRL-B to exit\r\n>'
const INTERRUPT = '\r\x03\x03'
const RAW_MODE = '\r\x01'

/**
 * Resolves to whether a program was interrupted. Throws `unavailable` when no REPL answers, with the likely cause, and as
 * `ReplLine.send`.
 */
export async function enterRepl(line: ReplLine, signal: AbortSignal): Promise<boolean> {
  const within = (ms: number): Wait => ({ untilMs: line.clock.monotonicMs() + ms, signal })
  let received = ''
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    line.clear()
    await line.send(INTERRUPT, within(RAW_MS))
    const prompt = await line.until('>>> ', within(PROMPT_MS))
    await line.send(RAW_MODE, within(RAW_MS))
    const raw = await line.until(RAW, within(RAW_MS))
    received += prompt.bytes.toString('latin1') + raw.bytes.toString('latin1')
    if (raw.isFound) {
      await skipLatePrompts(line, attempt, signal)
      return received.includes('KeyboardInterrupt')
    }
  }
  throw new AppError('unavailable', noRepl(line.name, received))
}

/** Reads the prompts with which the board answers the earlier attempts late. */
async function skipLatePrompts(line: ReplLine, attempts: number, signal: AbortSignal): Promise<void> {
  for (let late = 0; late < attempts; late++) {
    const { isFound } = await line.until(RAW, { untilMs: line.clock.monotonicMs() + PROMPT_MS, signal })
    if (!isFound) return
  }
}

function noRepl(name: string, received: string): string {
  if (received === '') return `${name} does not answer: it does not run MicroPython, or it hangs; press its reset button`
  if (received.includes(INTERRUPT + RAW_MODE)) return `${name} echoes what is sent to it: it does not run MicroPython`
  if (received.includes('>>>') || received.includes('KeyboardInterrupt'))
    return `${name} is busy: its program cannot be interrupted; press its reset button`
  return `${name} does not answer as MicroPython does: it runs something else, or the baud rate is wrong`
}
