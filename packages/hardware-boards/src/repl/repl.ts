/** Runs code on a board through the raw REPL of MicroPython, and restores the state of the board afterwards. */
import { AppError, type Clock } from '@sluice/sdk'
import type { Port } from '../devices.ts'
import { plainText } from '../protocol/frame.ts'
import { enterRepl } from './enter-repl.ts'
import { CODE_BYTES_MAX, OUTPUT_BYTES_MAX, RUN_MS } from './limits.ts'
import { ReplLine } from './repl-line.ts'
import { sendCode } from './send-code.ts'

/** The time for a program to end after an interrupt. */
const STOP_MS = 2000
const LEAVE_MS = 1000
const INTERRUPT = '\x03\x03'
const END = '\x04'

export interface Ran {
  /** The output, with `\n` as line end. */
  readonly stdout: string
  /** The traceback; empty when the code ended without an error. */
  readonly stderr: string
  /** The bytes of output that were left out. */
  readonly dropped: number
  /** True when the code did not end in time and was interrupted. */
  readonly isLate: boolean
}

export interface RunLimits {
  readonly timeoutMs?: number
  readonly outputBytesMax?: number
}

export interface ReplSession {
  /** The alias of the board, for messages. */
  readonly name: string
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Resets the board at the end, which starts `main.py`. A program that was interrupted is restarted in any case. */
  readonly reset?: boolean
}

export interface ReplResult<Result> {
  readonly result: Result
  /** True when the board was reset and runs its program from the start. */
  readonly wasRestarted: boolean
}

/** Throws as `enterRepl` and `work`. In any case the board is left at its prompt or running its program. */
export async function withRepl<Result>(
  port: Port,
  { name, clock, signal, reset = false }: ReplSession,
  work: (repl: Repl) => Promise<Result>,
): Promise<ReplResult<Result>> {
  const line = new ReplLine(port, name, clock)
  let wasInterrupted = false
  try {
    wasInterrupted = await enterRepl(line, signal)
    const result = await work(new Repl(line, signal))
    const wasRestarted = wasInterrupted || reset
    await leave(line, wasRestarted)
    return { result, wasRestarted }
  } catch (error) {
    // The board may be gone or in any state. This error is the one to report.
    await leave(line, wasInterrupted, INTERRUPT).catch(() => undefined)
    throw error
  } finally {
    line.stop()
  }
}

/** Returns to the friendly prompt. A soft reset starts `main.py` from that prompt only. */
async function leave(line: ReplLine, reset: boolean, interrupt = ''): Promise<void> {
  // Restores the board even when the call was aborted.
  const { signal } = new AbortController()
  const within = () => ({ untilMs: line.clock.monotonicMs() + LEAVE_MS, signal })
  await line.send(`\r${interrupt}\x02`, within())
  await line.until('>>> ', within())
  if (!reset) return
  await line.send(END, within())
  await line.until('soft reboot', within())
}

export class Repl {
  readonly #line: ReplLine
  readonly #signal: AbortSignal
  #hasRawPaste = true

  constructor(line: ReplLine, signal: AbortSignal) {
    this.#line = line
    this.#signal = signal
  }

  /**
   * Runs code and returns its output. Throws `unavailable` when the code cannot be interrupted or the board is unplugged,
   * `upstream` for an answer that a REPL would not give, and `aborted` after the code was interrupted.
   */
  async run(code: string, { timeoutMs = RUN_MS, outputBytesMax = OUTPUT_BYTES_MAX }: RunLimits = {}): Promise<Ran> {
    const line = this.#line
    const signal = this.#signal
    const bytes = Buffer.from(code)
    if (bytes.length > CODE_BYTES_MAX) throw new AppError('too_large', `The code has ${bytes.length} bytes; the limit is ${CODE_BYTES_MAX}`)
    const wait = { untilMs: line.clock.monotonicMs() + timeoutMs, signal }
    line.clear()
    this.#hasRawPaste = await sendCode(line, bytes, this.#hasRawPaste, wait)
    const stdout = await line.until(END, wait, outputBytesMax).catch(async (error: unknown) => {
      if (signal.aborted) await this.#interrupt()
      throw error
    })
    if (!stdout.isFound) return { stdout: textOf(stdout.bytes), stderr: await this.#interrupt(), dropped: stdout.dropped, isLate: true }
    const stderr = await line.until(`${END}>`, { untilMs: line.clock.monotonicMs() + STOP_MS, signal }, outputBytesMax)
    if (!stderr.isFound) throw new AppError('upstream', `${line.name} did not end its answer`)
    return { stdout: textOf(stdout.bytes), stderr: textOf(stderr.bytes), dropped: stdout.dropped + stderr.dropped, isLate: false }
  }

  /** Runs code that must not fail and returns its output. Throws as `run`, and `upstream` with the last line of a traceback. */
  async ask(code: string, limits: RunLimits = {}): Promise<string> {
    const { name } = this.#line
    const { stdout, stderr, dropped, isLate } = await this.run(code, limits)
    if (isLate) throw new AppError('upstream_timeout', `${name} did not answer within ${(limits.timeoutMs ?? RUN_MS) / 1000} s`)
    if (stderr !== '') throw new AppError('upstream', `${name} reports: ${lastLine(stderr)}`)
    if (dropped > 0) throw new AppError('too_large', `${name} sent ${dropped} bytes too many`)
    return stdout
  }

  /** Returns the traceback of the interrupted code. */
  async #interrupt(): Promise<string> {
    const { name, clock } = this.#line
    const wait = { untilMs: clock.monotonicMs() + STOP_MS, signal: new AbortController().signal }
    await this.#line.send(INTERRUPT, wait)
    const rest = await this.#line.until(`${END}>`, wait, OUTPUT_BYTES_MAX)
    if (!rest.isFound) throw new AppError('unavailable', `${name} cannot be interrupted: press its reset button`)
    return textOf(rest.bytes.subarray(rest.bytes.indexOf(END) + 1))
  }
}

const utf8 = new TextDecoder()
const textOf = (bytes: Uint8Array): string => utf8.decode(bytes).replaceAll('\r\n', '\n')
/** Returns the last line of a traceback, which states the error, without control characters. */
export const lastLine = (text: string): string => plainText(text.trim().split('\n').at(-1) ?? '')
