/** Stops what runs on a board and brings its REPL into raw mode, in which programs talk to it. */
import { AppError } from '@sluice/sdk'
import type { Wait } from './incoming.ts'
import { type Line, send } from './line.ts'

/** A program may take its time to end, or catch the first interrupt. */
const ATTEMPTS = 4
/** For the prompt after an interrupt; a board whose prompt was lost is asked for raw mode all the same. */
const PROMPT_MS = 700
const RAW_MS = 1500
const RAW = 'raw REPL; CTRL-B to exit\r\n>'
const INTERRUPT = '\r\x03\x03'
const RAW_MODE = '\r\x01'

/**
 * Resolves to whether a program was interrupted. Throws `unavailable` when no REPL answers, with what was heard instead, and
 * as `send`.
 */
export async function enterRepl(line: Line, signal: AbortSignal): Promise<boolean> {
  const { incoming, clock } = line
  const within = (ms: number): Wait => ({ untilMs: clock.monotonicMs() + ms, signal })
  let heard = ''
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    incoming.clear()
    await send(line, INTERRUPT, within(RAW_MS))
    const prompt = await incoming.until('>>> ', within(PROMPT_MS))
    await send(line, RAW_MODE, within(RAW_MS))
    const raw = await incoming.until(RAW, within(RAW_MS))
    heard += prompt.bytes.toString('latin1') + raw.bytes.toString('latin1')
    if (raw.found) {
      await settle(line, attempt, signal)
      return heard.includes('KeyboardInterrupt')
    }
  }
  throw new AppError('unavailable', noRepl(line.name, heard))
}

/** Attempts before this one may be answered late, each by a prompt of its own. */
async function settle({ incoming, clock }: Line, attempts: number, signal: AbortSignal): Promise<void> {
  for (let late = 0; late < attempts; late++) {
    const { found } = await incoming.until(RAW, { untilMs: clock.monotonicMs() + PROMPT_MS, signal })
    if (!found) return
  }
}

function noRepl(name: string, heard: string): string {
  if (heard === '') return `${name} does not answer: MicroPython is not on it, or it hangs; press its reset button`
  if (heard.includes(INTERRUPT + RAW_MODE)) return `${name} gives back what is sent to it: MicroPython is not on it`
  if (heard.includes('>>>') || heard.includes('KeyboardInterrupt')) return `${name} is busy: its program does not let itself be interrupted`
  return `${name} does not answer as MicroPython does: something else is on it, or the baud rate is wrong`
}
