/** The port behind which every adapter works, whatever it is connected by. */

/** Addresses are 7-bit. What nobody acknowledges throws `not_found`, a bus that hangs `upstream_timeout`, a lost adapter `unavailable`. */
export interface I2c {
  /**
   * Reads from a device; with a register that is written first, in the same transaction: between the two stands a repeated
   * start, no stop. Throws `invalid_request` for more than this adapter reads in one transaction.
   */
  read(address: number, length: number, register?: number): Promise<Uint8Array>
  write(address: number, bytes: Uint8Array): Promise<void>
  /** Reads one byte to see whether anybody answers; `held`: a driver of the kernel has it, so somebody does. */
  probe(address: number): Promise<boolean | 'held'>
}

export interface Spi {
  /** Full duplex under one chip select: as many bytes come back as go out. Throws `invalid_request` for what this adapter cannot do. */
  transfer(bytes: Uint8Array, how: SpiSettings): Promise<Uint8Array>
}

export interface SpiSettings {
  readonly mode: 0 | 1 | 2 | 3
  /** The fastest clock that may be used; undefined: the adapter's own. */
  readonly speedHz: number | undefined
}

/** Lines as bit masks, line 0 lowest; of `direction` 1 is an output. */
export interface GpioState {
  readonly direction: number
  readonly value: number
}

export interface GpioChange extends Partial<GpioState> {
  /** Those it is about; the others stay as they are. */
  readonly lines: number
}

export interface Gpio {
  /** Those that are there. */
  readonly lines: number
  /** Those that can be outputs. */
  readonly outputs: number
  read(): Promise<GpioState>
  /** A value is set before the line becomes an output, so that no other level shows in between. */
  write(change: GpioChange): Promise<GpioState>
}

/** From the slowest to the fastest, in hertz. */
export type SpeedRange = readonly [min: number, max: number]

/** Which of the settings an adapter can carry out. */
export interface Abilities {
  /** Absent: the clock cannot be chosen. */
  readonly i2cSpeedHz?: SpeedRange
  readonly spiSpeedHz?: SpeedRange
  readonly spiModes: readonly number[]
  readonly pullUps: boolean
  readonly volts: readonly number[]
}

export interface Adapter {
  /** Of the product, for people: `MCP2221`. */
  readonly name: string
  readonly abilities: Abilities
  readonly i2c?: I2c
  readonly spi?: Spi
  readonly gpio?: Gpio
  /** Gives the device free; used again it is taken again. Idempotent. */
  close(): Promise<void>
}
