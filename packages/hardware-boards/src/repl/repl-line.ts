/** The line to a board's REPL: reads in order, up to a mark or a number of bytes, and writes within a time limit. */

import { ByteBuffer, signalScope } from '@sluice/kit'
import { AppError, type Clock } from '@sluice/sdk'
import type { Port } from '../devices.ts'

/** The most unread bytes that are kept. When older ones are dropped, the marks that a reader waits for may be missing. */
const UNREAD_BYTES_MAX = 65_536
const READ_BYTES_MAX = 4096

export interface Wait {
  /** A time of `clock.monotonicMs()`. */
  readonly untilMs: number
  readonly signal: AbortSignal
}

export interface Read {
  /** The bytes before the mark. */
  readonly bytes: Buffer
  /** The number of further bytes that were left out. */
  readonly dropped: number
  /** False when the time was over before the mark arrived. */
  readonly isFound: boolean
}

export class ReplLine {
  /** The alias of the board, for messages. */
  readonly name: string
  readonly clock: Clock
  readonly #port: Port
  readonly #stopData: () => void
  readonly #stopClose: () => void
  #unread: Buffer = Buffer.alloc(0)
  #wake = (): void => undefined
  #isGone = false

  constructor(port: Port, name: string, clock: Clock) {
    this.name = name
    this.clock = clock
    this.#port = port
    this.#stopData = port.onData((bytes) => {
      this.#unread = Buffer.concat([this.#unread.subarray(-UNREAD_BYTES_MAX), bytes])
      this.#wake()
    })
    this.#stopClose = port.onClose(() => {
      this.#isGone = true
      this.#wake()
    })
  }

  /** The number of bytes that have arrived and were not read. */
  get unread(): number {
    return this.#unread.length
  }

  /** Drops the unread bytes. */
  clear(): void {
    this.#unread = Buffer.alloc(0)
  }

  stop(): void {
    this.#stopData()
    this.#stopClose()
  }

  /**
   * Reads up to and including the mark, and keeps the first `bytesMax` bytes. Throws `unavailable` when the board is
   * unplugged, and `aborted`.
   */
  async until(mark: string, wait: Wait, bytesMax = READ_BYTES_MAX): Promise<Read> {
    const end = Buffer.from(mark, 'latin1')
    using waiting = this.#begin(wait)
    const kept = new ByteBuffer()
    let dropped = 0
    const keep = (bytes: Buffer): void => {
      const part = bytes.subarray(0, bytesMax - kept.length)
      kept.append(Buffer.from(part))
      dropped += bytes.length - part.length
    }
    for (;;) {
      const at = this.#unread.indexOf(end)
      if (at >= 0) {
        keep(this.#shift(at))
        this.#shift(end.length)
        return { bytes: kept.bytes(), dropped, isFound: true }
      }
      // The last bytes may be the beginning of the mark.
      if (this.#unread.length >= end.length) keep(this.#shift(this.#unread.length - end.length + 1))
      if (!(await waiting.more())) {
        keep(this.#shift(this.#unread.length))
        return { bytes: kept.bytes(), dropped, isFound: false }
      }
    }
  }

  /** Reads `count` bytes; resolves to undefined when they do not arrive in time. Throws as `until`. */
  async take(count: number, wait: Wait): Promise<Buffer | undefined> {
    using waiting = this.#begin(wait)
    while (this.#unread.length < count) if (!(await waiting.more())) return undefined
    return this.#shift(count)
  }

  /**
   * Writes to the board. Throws `upstream_timeout` when it does not accept the bytes in time, `unavailable` when it is
   * unplugged, and `aborted`.
   */
  async send(bytes: string | Uint8Array, { untilMs, signal }: Wait): Promise<void> {
    using wait = signalScope([signal])
    const late = this.clock.sleep(Math.max(0, untilMs - this.clock.monotonicMs()), wait.signal).then(() => {
      if (signal.aborted) throw new AppError('aborted', 'The call was aborted')
      throw new AppError('upstream_timeout', `${this.name} does not accept what is sent to it: it hangs; press its reset button`)
    })
    const sending = this.#port.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
    await Promise.race([sending, late])
  }

  /** Starts one timer for the whole wait, because a board that sends without end wakes it thousands of times per second. */
  #begin({ untilMs, signal }: Wait) {
    const wait = signalScope([signal])
    let isLate = false
    void this.clock.sleep(Math.max(0, untilMs - this.clock.monotonicMs()), wait.signal).then(() => {
      isLate = true
      this.#wake()
    })
    return {
      /** Waits for more bytes; resolves to false when the time is over. */
      more: async (): Promise<boolean> => {
        if (signal.aborted) throw new AppError('aborted', 'The call was aborted')
        if (this.#isGone) throw new AppError('unavailable', `${this.name} is no longer connected`)
        if (isLate || this.clock.monotonicMs() >= untilMs) return false
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
        return true
      },
      [Symbol.dispose]: () => wait[Symbol.dispose](),
    }
  }

  #shift(count: number): Buffer {
    const shifted = this.#unread.subarray(0, count)
    this.#unread = this.#unread.subarray(count)
    return shifted
  }
}
