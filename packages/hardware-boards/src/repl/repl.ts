/** Runs code on a board through the raw REPL of MicroPython, and leaves the board as it was. */
import { AppError, type Clock } from '@sluice/sdk'
import type { Port } from '../devices.ts'
import { plainText } from '../protocol/frame.ts'
import { enterRepl } from './enter-repl.ts'
import { createIncoming } from './incoming.ts'
import { CODE_BYTES_MAX, OUTPUT_BYTES_MAX, RUN_MS } from './limits.ts'
import { type Line, send } from './line.ts'
import { sendCode } from './send-code.ts'

/** After an interrupt. */
const STOP_MS = 2000
const LEAVE_MS = 1000
const END = '\x04'

export interface Ran {
  /** Line ends are `\n`. */
  readonly stdout: string
  /** The traceback; empty: it ended well. */
  readonly stderr: string
  /** Bytes of output that were left out. */
  readonly dropped: number
  /** It did not end in time and was interrupted. */
  readonly late: boolean
}

export interface Repl {
  /**
   * Throws `unavailable` when the board cannot be brought to stop, or is unplugged; `upstream` when it answers nonsense;
   * `aborted`, after it was interrupted.
   */
  run(code: string, options?: { readonly timeoutMs?: number; readonly outputBytesMax?: number }): Promise<Ran>
  /** As `run` for code of our own, whose failure is an error: throws `upstream` with the last line of its traceback. */
  ask(code: string, options?: { readonly timeoutMs?: number; readonly outputBytesMax?: number }): Promise<string>
}

export interface ReplOptions {
  /** The board, for sentences. */
  readonly name: string
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Starts `main.py` anew in the end. A program that was interrupted is started anew whatever stands here. */
  readonly reset?: boolean
}

export interface ReplResult<Result> {
  readonly result: Result
  /** The board was reset, so that its program runs from its beginning. */
  readonly restarted: boolean
}

/** Throws as `enterRepl` and `work` do; the board is left at its prompt, or running its program, in any case. */
export async function withRepl<Result>(
  port: Port,
  { name, clock, signal, reset = false }: ReplOptions,
  work: (repl: Repl) => Promise<Result>,
): Promise<ReplResult<Result>> {
  const incoming = createIncoming(port, name, clock)
  const line: Line = { name, port, incoming, clock }
  let interrupted = false
  try {
    interrupted = await enterRepl(line, signal)
    const result = await work(createRepl(line, signal))
    const restarted = interrupted || reset
    await leave(line, restarted)
    return { result, restarted }
  } catch (error) {
    // The board may be gone, or in whatever state: the error that matters is this one.
    await leave(line, interrupted, '\x03\x03').catch(() => undefined)
    throw error
  } finally {
    incoming.stop()
  }
}

/** Back to the prompt for people; from there, and only from there, a soft reset starts `main.py`. */
async function leave(line: Line, reset: boolean, interrupt = ''): Promise<void> {
  const { incoming, clock } = line
  // Whoever has aborted the call still wants the board back as it was.
  const { signal } = new AbortController()
  const within = () => ({ untilMs: clock.monotonicMs() + LEAVE_MS, signal })
  await send(line, `\r${interrupt}\x02`, within())
  await incoming.until('>>> ', within())
  if (!reset) return
  await send(line, END, within())
  await incoming.until('soft reboot', within())
}

function createRepl(line: Line, signal: AbortSignal): Repl {
  const { name, incoming, clock } = line
  let rawPaste = true

  const run: Repl['run'] = async (code, { timeoutMs = RUN_MS, outputBytesMax = OUTPUT_BYTES_MAX } = {}) => {
    const bytes = Buffer.from(code)
    if (bytes.length > CODE_BYTES_MAX) throw new AppError('too_large', `The code has ${bytes.length} bytes, over ${CODE_BYTES_MAX}`)
    const wait = { untilMs: clock.monotonicMs() + timeoutMs, signal }
    incoming.clear()
    rawPaste = await sendCode(line, bytes, rawPaste, wait)
    const stdout = await incoming.until(END, { ...wait, bytesMax: outputBytesMax }).catch(async (error: unknown) => {
      if (signal.aborted) await interrupt()
      throw error
    })
    if (!stdout.found) {
      const rest = await interrupt()
      return { stdout: textOf(stdout.bytes), stderr: rest, dropped: stdout.dropped, late: true }
    }
    const stderr = await incoming.until(`${END}>`, { untilMs: clock.monotonicMs() + STOP_MS, signal, bytesMax: outputBytesMax })
    if (!stderr.found) throw new AppError('upstream', `${name} did not end its answer`)
    return { stdout: textOf(stdout.bytes), stderr: textOf(stderr.bytes), dropped: stdout.dropped + stderr.dropped, late: false }
  }

  /** The traceback of what was interrupted. */
  const interrupt = async (): Promise<string> => {
    const wait = { untilMs: clock.monotonicMs() + STOP_MS, signal: new AbortController().signal, bytesMax: OUTPUT_BYTES_MAX }
    await send(line, '\x03\x03', wait)
    const rest = await incoming.until(`${END}>`, wait)
    if (!rest.found) throw new AppError('unavailable', `${name} does not let itself be interrupted: press its reset button`)
    return textOf(rest.bytes.subarray(rest.bytes.indexOf(END) + 1))
  }

  return {
    run,
    async ask(code, options = {}) {
      const { stdout, stderr, dropped, late } = await run(code, options)
      if (late) throw new AppError('upstream_timeout', `${name} did not answer within ${(options.timeoutMs ?? RUN_MS) / 1000} s`)
      if (stderr !== '') throw new AppError('upstream', `${name} says: ${lastLine(stderr)}`)
      if (dropped > 0) throw new AppError('too_large', `${name} answers more than is taken`)
      return stdout
    },
  }
}

const utf8 = new TextDecoder()
const textOf = (bytes: Uint8Array): string => utf8.decode(bytes).replaceAll('\r\n', '\n')
/** What a traceback comes to, made safe for terminals. */
export const lastLine = (text: string): string => plainText(text.trim().split('\n').at(-1) ?? '')
