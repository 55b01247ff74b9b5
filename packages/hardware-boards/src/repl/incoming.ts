/** What a board sends, to be read in order: up to a mark, within a time, and never more kept than asked for. */

import { ByteBuffer, signalScope } from '@sluice/kit'
import { AppError, type Clock } from '@sluice/sdk'
import type { Port } from '../devices.ts'

/** What came while nobody read; older bytes go first, and a stream with a hole in it is told by its marks missing. */
const UNREAD_BYTES_MAX = 65_536

export interface Wait {
  /** On `clock.monotonicMs()`. */
  readonly untilMs: number
  readonly signal: AbortSignal
  /** Of what is read; the rest is dropped. Default: 4096. */
  readonly bytesMax?: number
}

export interface Read {
  /** Without the mark. */
  readonly bytes: Buffer
  readonly dropped: number
  /** False: the time was up first. */
  readonly found: boolean
}

export interface Incoming {
  /** Reads up to and including the mark. Throws `unavailable` when the board is unplugged, `aborted`. */
  until(mark: string, wait: Wait): Promise<Read>
  /** The next so many bytes; `undefined`: they did not come in time. Throws like `until`. */
  take(count: number, wait: Wait): Promise<Buffer | undefined>
  /** Bytes that have come and were not read. */
  readonly unread: number
  /** Forgets what has come. */
  clear(): void
  stop(): void
}

const BYTES_MAX = 4096

export function createIncoming(port: Port, name: string, clock: Clock): Incoming {
  let unread: Buffer = Buffer.alloc(0)
  let wake = (): void => undefined
  let gone = false
  const stopData = port.onData((bytes) => {
    unread = Buffer.concat([unread.subarray(-UNREAD_BYTES_MAX), bytes])
    wake()
  })
  const stopClose = port.onClose(() => {
    gone = true
    wake()
  })

  /** One timer for a whole wait: a board that talks without an end comes by here thousands of times a second. */
  const begin = ({ untilMs, signal }: Wait) => {
    const wait = signalScope([signal])
    let late = false
    void clock.sleep(Math.max(0, untilMs - clock.monotonicMs()), wait.signal).then(() => {
      late = true
      wake()
    })
    return {
      /** False: the time is up. */
      async more(): Promise<boolean> {
        if (signal.aborted) throw new AppError('aborted', 'The call was aborted')
        if (gone) throw new AppError('unavailable', `${name} is not connected any more`)
        if (late || clock.monotonicMs() >= untilMs) return false
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        return true
      },
      [Symbol.dispose]: () => wait[Symbol.dispose](),
    }
  }

  const eat = (count: number): Buffer => {
    const eaten = unread.subarray(0, count)
    unread = unread.subarray(count)
    return eaten
  }

  return {
    async until(mark, wait) {
      const end = Buffer.from(mark, 'latin1')
      const { bytesMax = BYTES_MAX } = wait
      using waiting = begin(wait)
      const kept = new ByteBuffer()
      let dropped = 0
      const keep = (bytes: Buffer): void => {
        const part = bytes.subarray(0, bytesMax - kept.length)
        kept.append(Buffer.from(part))
        dropped += bytes.length - part.length
      }
      for (;;) {
        const at = unread.indexOf(end)
        if (at >= 0) {
          keep(eat(at))
          eat(end.length)
          return { bytes: kept.bytes(), dropped, found: true }
        }
        // The mark may have begun at the end of what is there.
        if (unread.length >= end.length) keep(eat(unread.length - end.length + 1))
        if (!(await waiting.more())) {
          keep(eat(unread.length))
          return { bytes: kept.bytes(), dropped, found: false }
        }
      }
    },
    async take(count, wait) {
      using waiting = begin(wait)
      while (unread.length < count) if (!(await waiting.more())) return undefined
      return eat(count)
    },
    get unread() {
      return unread.length
    },
    clear() {
      unread = Buffer.alloc(0)
    },
    stop() {
      stopData()
      stopClose()
    },
  }
}
