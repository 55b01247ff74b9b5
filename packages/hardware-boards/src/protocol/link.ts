/** The line protocol to one board, over one open port: one request after the other, each answered by its own reply. */
import { randomInt } from 'node:crypto'
import { AppError, type Clock } from '@sluice/sdk'
import type { Port } from '../devices.ts'
import { type Frame, readFrame } from './frame.ts'
import { createLineDecoder } from './line-decoder.ts'

/** In all, its repetitions included. */
export const REQUEST_MS = 5000
/** A read that was not answered by then is asked again: its line, or the answer, was hit by noise. */
export const ASK_AGAIN_MS = 1500
export const PING_MS = 300
/** Many boards restart when their port is opened, and are silent for up to two seconds then. */
export const PINGS_MAX = 10

/** `numbered`: `{"id","cmd","args"}`, answered by `{"id","ok","result"}`. `bare`: `{"cmd","params"}`, answered by `{"ok","data"}`. */
export type Dialect = 'numbered' | 'bare'

export interface RequestOptions {
  readonly signal: AbortSignal
  /** It only reads: asking twice does no harm. */
  readonly repeatable: boolean
}

export interface Link {
  /** Finds out how the board speaks. Throws `upstream_timeout` when none of `pings` is answered. */
  hello(signal: AbortSignal, pings?: number): Promise<void>
  /**
   * The result as the board gave it. Throws `upstream` for its refusal, `upstream_timeout` for its silence, `unavailable`
   * when it is unplugged meanwhile, `aborted`. Not to be called again before it has settled.
   */
  request(command: string, args: Readonly<Record<string, unknown>>, options: RequestOptions): Promise<unknown>
  readonly closed: boolean
  close(): Promise<void>
}

export interface LinkOptions {
  readonly port: Port
  /** The board, for sentences. */
  readonly name: string
  readonly clock: Clock
  /** What the board says unasked. Called in order; must not throw. */
  readonly onSignal?: (signal: string, value: unknown) => void
  readonly onClose?: () => void
}

type Reply = Extract<Frame, { kind: 'reply' }>

interface Waiting {
  readonly untilMs: number
  readonly answers: (reply: Reply) => boolean
  readonly resolve: (reply: Reply | undefined) => void
  readonly reject: (error: unknown) => void
}

const FIRMWARE = 'firmware/README.md of the source says how to put it there'

export function createLink({ port, name, clock, onSignal, onClose }: LinkOptions): Link {
  let dialect: Dialect | undefined
  let closed = false
  let waiting: Waiting | undefined
  let wakesAtMs = Number.POSITIVE_INFINITY
  // Answers to what was asked before the port was opened, perhaps by another program, must not be taken for ours.
  let number = randomInt(1_000_000)
  const heard = { echoes: 0, noise: 0, bare: 0 }
  /** Pings of the last hello whose answers may still come; without numbers they look like answers to what was asked since. */
  let pingsOut = 0

  const onLine = (line: string): void => {
    const frame = readFrame(line)
    if (frame.kind === 'signal') onSignal?.(frame.signal, frame.value)
    else if (frame.kind === 'echo') heard.echoes++
    else if (frame.kind === 'noise') heard.noise += line === '' ? 0 : 1
    else {
      if (frame.id === null) heard.bare++
      if (waiting?.answers(frame)) waiting.resolve(frame)
    }
  }
  const gone = (): AppError => new AppError('unavailable', `${name} is not connected any more`)
  const stopReading = port.onData(createLineDecoder(onLine))
  port.onClose(() => {
    closed = true
    stopReading()
    waiting?.reject(gone())
    onClose?.()
  })

  const nextId = (): string => String(++number)
  const lineOf = (style: Dialect, id: string, command: string, args: unknown): string =>
    `${JSON.stringify(style === 'bare' ? { cmd: command, params: args } : { id, cmd: command, args })}\n`

  /** One sleep for many requests: most are answered long before, and a timer for each would cost more than the rest. */
  const wakeAt = (untilMs: number): void => {
    if (wakesAtMs <= untilMs) return
    wakesAtMs = untilMs
    void clock.sleep(Math.max(1, untilMs - clock.monotonicMs())).then(() => {
      if (wakesAtMs !== untilMs) return
      wakesAtMs = Number.POSITIVE_INFINITY
      if (!waiting) return
      if (waiting.untilMs <= clock.monotonicMs()) waiting.resolve(undefined)
      else wakeAt(waiting.untilMs)
    })
  }

  /** Writes and waits; undefined: there was no answer in time. */
  const exchange = async (line: string, answers: Waiting['answers'], ms: number, signal: AbortSignal): Promise<Reply | undefined> => {
    if (closed) throw gone()
    if (signal.aborted) throw aborted()
    const answer = Promise.withResolvers<Reply | undefined>()
    const abort = () => answer.reject(aborted())
    signal.addEventListener('abort', abort, { once: true })
    const mine: Waiting = { untilMs: clock.monotonicMs() + ms, answers, resolve: answer.resolve, reject: answer.reject }
    waiting = mine
    wakeAt(mine.untilMs)
    port.write(Buffer.from(line)).catch(answer.reject)
    try {
      return await answer.promise
    } finally {
      signal.removeEventListener('abort', abort)
      if (waiting === mine) waiting = undefined
    }
  }

  /** What is known of a board that does not answer. */
  const silence = (ms: number, more = ''): AppError => {
    const why =
      heard.echoes > 0
        ? `; its line gives back what is sent, so no firmware that speaks the protocol is running on it: ${FIRMWARE}`
        : heard.noise > 0
          ? `; what it sends is not the line protocol: is its baud rate right, and its firmware on it? If not, ${FIRMWARE}`
          : `; is its firmware on it? If not, ${FIRMWARE}`
    return new AppError('upstream_timeout', `${name} did not answer within ${ms / 1000} s${more}${why}`)
  }

  const hello = async (signal: AbortSignal, pings = PINGS_MAX, untilMs = Number.POSITIVE_INFINITY): Promise<void> => {
    dialect = undefined
    pingsOut = 0
    for (let ping = 0; ping < pings && clock.monotonicMs() < untilMs; ping++) {
      const id = nextId()
      // The newline ends whatever the board has half read. Who has answered without a number is asked without one.
      const style: Dialect = heard.bare > 0 && ping % 2 === 1 ? 'bare' : 'numbered'
      const answers = (reply: Reply) => reply.id === id || (reply.id === null && isPong(reply))
      const reply = await exchange(`\n${lineOf(style, id, 'ping', {})}`, answers, Math.min(PING_MS, untilMs - clock.monotonicMs()), signal)
      if (!reply) {
        pingsOut++
        continue
      }
      dialect = reply.id === null ? 'bare' : 'numbered'
      return
    }
    throw silence(pings * PING_MS)
  }

  const isLatePong = (reply: Reply): boolean => isPong(reply) && pingsOut-- > 0

  const refuse = ({ error }: Reply): AppError => new AppError('upstream', `${name} refuses: ${error || 'it does not say why'}`)

  const request = async (
    command: string,
    args: Readonly<Record<string, unknown>>,
    { signal, repeatable }: RequestOptions,
  ): Promise<unknown> => {
    const endMs = clock.monotonicMs() + REQUEST_MS
    const ids = new Set<string>()
    const answers = (reply: Reply) =>
      dialect === 'bare' ? reply.id === null && !isLatePong(reply) : reply.id !== null && ids.has(reply.id)
    for (let attempt = 0; ; attempt++) {
      if (dialect === undefined) await hello(signal, PINGS_MAX, endMs)
      const leftMs = endMs - clock.monotonicMs()
      if (leftMs <= 0) throw silence(REQUEST_MS)
      const id = nextId()
      ids.add(id)
      const line = lineOf(dialect ?? 'numbered', id, command, args)
      const reply = await exchange(
        attempt > 0 ? `\n${line}` : line,
        answers,
        repeatable ? Math.min(leftMs, ASK_AGAIN_MS) : leftMs,
        signal,
      ).catch((error: unknown) => {
        forgetWhereWeAre()
        throw error
      })
      if (reply) {
        if (!reply.ok) throw refuse(reply)
        return reply.value
      }
      forgetWhereWeAre()
      if (!repeatable) throw silence(REQUEST_MS, '; whether it was done is not known')
    }
  }

  /** Without numbers a late answer would be taken for that to the next request: only another hello tells. */
  const forgetWhereWeAre = (): void => {
    if (dialect === 'bare') dialect = undefined
  }

  return {
    hello,
    request,
    get closed() {
      return closed
    },
    close: () => port.close(),
  }
}

/** Of the answers without a number, one that can only be to a ping. */
function isPong({ ok, value }: Reply): boolean {
  if (!ok) return false
  // What a board says of its pins may name its firmware, too.
  return value === 'pong' || (typeof value === 'object' && value !== null && 'firmware' in value && !('gpio' in value))
}

const aborted = (): AppError => new AppError('aborted', 'The call was aborted')
