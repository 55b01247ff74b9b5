/** The interface through which the pins of a board are reached, whatever its transport, and its lazy implementation. */
import type { Port } from '../devices.ts'
import type { Capabilities } from '../protocol/answers.ts'

/** The names of signals. */
export type Signals = ReadonlySet<string>

export const NO_SIGNALS: Signals = new Set()

export interface BoardLine {
  /** Asks the board once for each connection. Throws as `Link.request`. */
  capabilities(signal: AbortSignal): Promise<Capabilities>
  read(pin: number, signal: AbortSignal): Promise<0 | 1>
  /** Sends the request once; after a time-out it is not known whether the board carried it out. */
  write(pin: number, value: 0 | 1, signal: AbortSignal): Promise<void>
  /** See `Devices.withPort`. */
  withPort<Result>(signal: AbortSignal, work: (port: Port) => Promise<Result>): Promise<Result>
  /**
   * Sets the signals to listen to. While there are any, the line stays open and is reopened when it is lost, and the board
   * watches the pins that the signals name (`pin_<number>`).
   */
  listen(wanted: Signals): void
  /** Closes the port, for example because the board was unplugged. The next call opens it again. */
  drop(): Promise<void>
  /** Closes the line permanently. Idempotent. */
  close(): Promise<void>
}

export const NO_CAPABILITIES: Capabilities = { gpio: null, led: null, board: null, firmware: null }

/** Returns a line that is loaded by its first use, because most machines have no board. */
export function lazyLine(load: () => Promise<BoardLine>): BoardLine {
  let loading: Promise<BoardLine> | undefined
  let isClosed = false
  const line = (): Promise<BoardLine> => {
    loading ??= load()
    return loading
  }
  return {
    capabilities: async (signal) => (await line()).capabilities(signal),
    read: async (pin, signal) => (await line()).read(pin, signal),
    write: async (pin, value, signal) => (await line()).write(pin, value, signal),
    withPort: async (signal, work) => (await line()).withPort(signal, work),
    listen(wanted) {
      // A line that was never loaded has nothing open to close.
      if (wanted.size === 0 && !loading) return
      void line().then((loaded) => loaded.listen(isClosed ? NO_SIGNALS : wanted))
    },
    drop: async () => (await loading)?.drop(),
    async close() {
      isClosed = true
      await (await loading)?.close()
    },
  }
}
