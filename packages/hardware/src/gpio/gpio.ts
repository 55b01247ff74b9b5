/** The port of GPIO lines: chips, what their lines are, and handles on lines that are held until they are closed. */

export type Level = 0 | 1
export type Direction = 'input' | 'output'
export type Bias = 'pull-up' | 'pull-down' | 'none'
export type Edge = 'rising' | 'falling'

export interface GpioChip {
  /** `/dev/gpiochip0`: the number is that of this start of the machine, so tell chips by their label. */
  readonly path: string
  readonly label: string
  /** How many: their offsets are 0 to `lines - 1`. */
  readonly lines: number
}

export interface GpioLineInfo {
  readonly offset: number
  /** Empty: it has none. */
  readonly name: string
  readonly isUsed: boolean
  /** Who holds it, in the holder's own words; empty: nobody does, or it does not say. */
  readonly consumer: string
  readonly direction: Direction
}

export interface EdgeEvent {
  readonly offset: number
  readonly edge: Edge
  /** Of the monotonic clock, as the kernel's interrupt saw it. */
  readonly atNs: bigint
  /** Counts up by one for each event of its request: a gap is what the kernel had no room for. */
  readonly sequence: number
}

export interface EdgeWatch {
  readonly edge: Edge | 'both'
  /** A level that holds for less time is no edge, in microseconds. */
  readonly debounceUs?: number
  /** Called on the event loop, once for each event, in order. Must not throw. */
  readonly onEvent: (event: EdgeEvent) => void
  /** Called once if the chip goes away; the lines are closed then. Linux before 6.6 does not tell: there only `read` shows it. */
  readonly onLost?: () => void
}

export interface LineRequest {
  /** 1 to 64 lines of one chip. */
  readonly offsets: readonly number[]
  /** `as-is`: the direction stays what it is, and only `read` is of use. */
  readonly direction: Direction | 'as-is'
  /** What others see as the holder; at most 31 bytes. */
  readonly consumer: string
  /** Of outputs, in the order of `offsets`; default: all 0. */
  readonly levels?: readonly Level[]
  /** Of inputs; absent: as it is. */
  readonly bias?: Bias
  /** Of inputs. */
  readonly watch?: EdgeWatch
}

/** Lines that nobody else can have until they are closed. What an output does then is the driver's affair. */
export interface GpioLines {
  readonly offsets: readonly number[]
  /** In the order of `offsets`; of outputs what they put out. Throws `unavailable` if the chip is gone or it is closed. */
  read(): Level[]
  /** All at once, in the order of `offsets`. Throws as `read` does, and `invalid_request` for inputs. */
  write(levels: readonly Level[]): void
  /** Idempotent. */
  close(): void
}

/** Throws `forbidden` with what to do where the permission is missing, `unavailable` where the kernel cannot do it. */
export interface Gpio {
  /** Those there are, in the order of their numbers; empty: none. */
  chips(): Promise<GpioChip[]>
  /** What one line is just now. Throws `invalid_request` for one that is not there. */
  line(chip: string, offset: number): Promise<GpioLineInfo>
  /**
   * A worker thread that watches edges closes its lines and then ends by itself: terminated in the midst of an event it
   * could take the process along. Throws `conflict` with the holder's name if one of the lines is held, and then none is taken.
   */
  request(chip: string, request: LineRequest): Promise<GpioLines>
}
