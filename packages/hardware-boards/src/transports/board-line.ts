/** How pins of a board are reached, whatever lies between. */
import type { Port } from '../devices.ts'
import type { Capabilities } from '../protocol/answers.ts'

export interface BoardLine {
  /** Asked of the board once while it is connected. Throws as `Link.request` does. */
  capabilities(signal: AbortSignal): Promise<Capabilities>
  read(pin: number, signal: AbortSignal): Promise<0 | 1>
  /** Asked once: a time-out leaves open whether it was done. */
  write(pin: number, value: 0 | 1, signal: AbortSignal): Promise<void>
  /** See `Devices.withPort`. */
  withPort<Result>(signal: AbortSignal, work: (port: Port) => Promise<Result>): Promise<Result>
  /**
   * The signals that are wanted of it: while there are any the line stays open, is opened again when it was lost, and the
   * board watches the pins they name (`pin_<number>`).
   */
  listen(wanted: ReadonlySet<string>): void
  /** What was open is lost, as when it was unplugged. The next call opens it anew. */
  drop(): Promise<void>
  /** For good. Idempotent. */
  close(): Promise<void>
}

export const SAYS_NOTHING: Capabilities = { gpio: null, led: null, board: null, firmware: null }
