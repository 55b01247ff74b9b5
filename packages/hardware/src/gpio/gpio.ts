/** The interface to GPIO: chips, the state of their lines, and handles that hold lines until they are closed. */

export type Level = 0 | 1
export type Direction = 'input' | 'output'
export type Bias = 'pull-up' | 'pull-down' | 'none'
export type Edge = 'rising' | 'falling'

export interface GpioChip {
  /** For example `/dev/gpiochip0`. The number can change with each boot, so identify chips by their label. */
  readonly path: string
  readonly label: string
  /** The number of lines. Their offsets are 0 to `lines - 1`. */
  readonly lines: number
}

export interface GpioLineInfo {
  readonly offset: number
  /** Empty when the line has no name. */
  readonly name: string
  readonly isUsed: boolean
  /** The name that the holder of the line gave itself. Empty when the line is free or its holder gave no name. */
  readonly consumer: string
  readonly direction: Direction
}

export interface EdgeEvent {
  readonly offset: number
  readonly edge: Edge
  /** When the kernel's interrupt saw the edge, on the monotonic clock. */
  readonly atNs: bigint
  /** Counts the events of the request. A gap means that the kernel's buffer was full and it dropped events. */
  readonly sequence: number
}

export interface EdgeWatch {
  readonly edge: Edge | 'both'
  /** Changes shorter than this many microseconds are ignored. */
  readonly debounceUs?: number
  /** Runs on the event loop, once for each event, in order. Must not throw. */
  readonly onEvent: (event: EdgeEvent) => void
  /**
   * Runs once when the chip disappears, after the lines were closed. Linux before 6.6 does not report the loss; there only
   * `read` fails.
   */
  readonly onLost?: () => void
}

export interface LineRequest {
  /** 1 to 64 lines of one chip. */
  readonly offsets: readonly number[]
  /** `as-is` keeps the current direction; such lines can only be read. */
  readonly direction: Direction | 'as-is'
  /** The holder's name that other programs see, at most 31 bytes. */
  readonly consumer: string
  /** The first levels of outputs, in the order of `offsets`; all 0 unless given. */
  readonly levels?: readonly Level[]
  /** The bias of inputs; unchanged unless given. */
  readonly bias?: Bias
  /** Reports the edges of inputs. */
  readonly watch?: EdgeWatch
}

/** Requested lines. No other program can request them until they are closed. The driver decides the level of an output after that. */
export interface GpioLines {
  readonly offsets: readonly number[]
  /**
   * Returns the levels in the order of `offsets`, for outputs the level they drive. Throws `unavailable` when the chip is gone or
   * the lines are closed.
   */
  read(): Level[]
  /** Sets all levels at once, in the order of `offsets`. Throws as `read` does, and `invalid_request` for inputs. */
  write(levels: readonly Level[]): void
  /** Idempotent. */
  close(): void
}

/** Every method throws `forbidden` with the cure when the permission is missing, and `unavailable` when the kernel lacks support. */
export interface Gpio {
  /** Returns the chips of this machine in the order of their numbers. */
  chips(): Promise<GpioChip[]>
  /** Returns the current state of one line. Throws `invalid_request` when the chip has no such line. */
  line(chip: string, offset: number): Promise<GpioLineInfo>
  /**
   * Requests all of the lines or none. Throws `conflict` with the holder's name when one of them is held. A worker thread that
   * watches edges must close its lines and return by itself: terminating it during an event can end the whole process.
   */
  request(chip: string, request: LineRequest): Promise<GpioLines>
}
