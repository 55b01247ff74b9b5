/** The interface that every adapter implements, however it is connected. */

/**
 * An I2C bus. Addresses are 7-bit. Every method throws `not_found` when no device acknowledges the address, `upstream_timeout` when
 * the bus hangs and `unavailable` when the adapter is gone.
 */
export interface I2c {
  /**
   * Reads from a device in one transaction. With `register`, writes that byte first and reads after a repeated start. Throws
   * `invalid_request` when the adapter cannot read that many bytes in one transaction.
   */
  read(address: number, length: number, register?: number): Promise<Uint8Array>
  write(address: number, bytes: Uint8Array): Promise<void>
  /** Reads one byte to see whether a device answers. Returns `held` when a kernel driver owns the device at that address. */
  probe(address: number): Promise<boolean | 'held'>
}

export interface Spi {
  /**
   * Sends bytes under one chip select and returns as many received bytes (full duplex). Throws `invalid_request` for settings that
   * the adapter does not support.
   */
  transfer(bytes: Uint8Array, settings: SpiSettings): Promise<Uint8Array>
}

export interface SpiSettings {
  readonly mode: 0 | 1 | 2 | 3
  /** The fastest clock to use; undefined for the adapter's default. */
  readonly speedHz: number | undefined
}

/** GPIO lines as bit masks, line 0 in the lowest bit. A 1 in `direction` is an output. */
export interface GpioState {
  readonly direction: number
  readonly value: number
}

export interface GpioChange extends Partial<GpioState> {
  /** The lines to change. The other lines keep their state. */
  readonly lines: number
}

export interface Gpio {
  /** The lines that the adapter has. */
  readonly lines: number
  /** The lines that can be outputs. */
  readonly outputs: number
  read(): Promise<GpioState>
  /** Sets values before directions, so that a new output never drives another level. */
  write(change: GpioChange): Promise<GpioState>
}

/** Returns `before` with the bits of `lines` replaced by the same bits of `after`. */
export const changedLines = (lines: number, before: number, after: number): number => (before & ~lines) | (after & lines)

/** The slowest and the fastest clock, in hertz. */
export type SpeedRange = readonly [min: number, max: number]

/** Returns the speed in the range that is nearest to `speedHz`. */
export const clampSpeed = (speedHz: number, [min, max]: SpeedRange): number => Math.min(max, Math.max(min, speedHz))

/** The settings that an adapter supports. */
export interface Abilities {
  /** Absent when the I2C clock is fixed. */
  readonly i2cSpeedHz?: SpeedRange
  /** Absent when the SPI clock is fixed. */
  readonly spiSpeedHz?: SpeedRange
  readonly spiModes: readonly number[]
  /** Whether pull-up resistors can be switched on. */
  readonly pullUps: boolean
  /** The line levels that can be selected. */
  readonly volts: readonly number[]
}

export interface Adapter {
  /** The product name, such as `MCP2221`. */
  readonly name: string
  readonly abilities: Abilities
  readonly i2c?: I2c
  readonly spi?: Spi
  readonly gpio?: Gpio
  /** Releases the device. The next use opens it again. Idempotent. */
  close(): Promise<void>
}
