/** The reports of a Microchip MCP2221 and MCP2221A (data sheet DS20005565): 64 bytes in each direction, the command first. */

export const REPORT_BYTES = 64
/** The data bytes that fit into one report. */
export const DATA_BYTES_MAX = 60

export const COMMAND = {
  status: 0x10,
  getData: 0x40,
  setGpio: 0x50,
  getGpio: 0x51,
  setSettings: 0x60,
  getSettings: 0x61,
  write: 0x90,
  read: 0x91,
  readRepeatedStart: 0x93,
  writeNoStop: 0x94,
} as const

/** The states of the I2C engine that the driver distinguishes. */
export const STATE = { idle: 0x00, addressNotAcknowledged: 0x25, heldAfterWrite: 0x45, partialData: 0x54, allData: 0x55 } as const
const TIMEOUTS: readonly number[] = [0x12, 0x17, 0x23, 0x44, 0x52, 0x62]
export const isTimeout = (state: number): boolean => TIMEOUTS.includes(state)

const CANCEL = 0x10
const SET_SPEED = 0x20
const NOT_ACKNOWLEDGED = 0x40
const CLOCK_HZ = 12_000_000
/** The cycles that the chip adds to the divider. */
const CLOCK_OVERHEAD = 3
const DIVIDER_MAX = 255
const NO_DATA = 127

/** The slowest clock that the divider can set and the fastest that the data sheet allows. */
export const I2C_SPEED_RANGE = [Math.ceil(CLOCK_HZ / (DIVIDER_MAX + CLOCK_OVERHEAD)), 400_000] as const

const report = (...bytes: readonly number[]): Uint8Array => {
  const whole = new Uint8Array(REPORT_BYTES)
  whole.set(bytes)
  return whole
}

export const statusReport = (): Uint8Array => report(COMMAND.status)
export const cancelReport = (): Uint8Array => report(COMMAND.status, 0, CANCEL)

/** Selects the fastest clock of the chip that does not exceed `speedHz`. */
export const speedReport = (speedHz: number): Uint8Array => {
  const divider = Math.min(DIVIDER_MAX, Math.ceil(CLOCK_HZ / speedHz) - CLOCK_OVERHEAD)
  return report(COMMAND.status, 0, 0, SET_SPEED, divider)
}
export const isSpeedAccepted = (answer: Uint8Array): boolean => answer[3] === SET_SPEED

/** One report of a write of `length` bytes; `part` is the data in this report. */
export const writeReport = (
  command: typeof COMMAND.write | typeof COMMAND.writeNoStop,
  { address, length, part }: { readonly address: number; readonly length: number; readonly part: Uint8Array },
): Uint8Array => report(command, length & 0xff, length >> 8, address << 1, ...part)

export const readReport = (
  command: typeof COMMAND.read | typeof COMMAND.readRepeatedStart,
  { address, length }: { readonly address: number; readonly length: number },
): Uint8Array => report(command, length & 0xff, length >> 8, (address << 1) | 1)

export const getDataReport = (): Uint8Array => report(COMMAND.getData)

export interface EngineStatus {
  readonly state: number
  /** Whether the device did not acknowledge its address. */
  readonly notAcknowledged: boolean
  /** The levels of the two bus lines. They are valid while the engine is idle. */
  readonly clockHigh: boolean
  readonly dataHigh: boolean
}

export const engineStatus = (answer: Uint8Array): EngineStatus => ({
  state: answer[8] ?? 0,
  notAcknowledged: ((answer[20] ?? 0) & NOT_ACKNOWLEDGED) !== 0,
  clockHigh: answer[22] !== 0,
  dataHigh: answer[23] !== 0,
})

/** Returns the bytes of an answer to `getData`; undefined when none have arrived yet. */
export function receivedData(answer: Uint8Array): Uint8Array | undefined {
  const [, result, state, count = 0] = answer
  if (result !== 0 || (state !== STATE.partialData && state !== STATE.allData) || count === NO_DATA) return undefined
  return answer.subarray(4, 4 + Math.min(count, DATA_BYTES_MAX))
}

export const GPIO_LINES = 4
export const GPIO_MASK = 0b1111
/** The value of a pin with another function than GPIO. */
const OTHER_FUNCTION = 0xee

export const getGpioReport = (): Uint8Array => report(COMMAND.getGpio)

/** Returns the state of one line from an answer to `getGpio`; undefined when the pin has another function. */
export function gpioLine(answer: Uint8Array, line: number): { readonly value: 0 | 1; readonly isOutput: boolean } | undefined {
  const value = answer[2 + 2 * line]
  const direction = answer[3 + 2 * line]
  if (value === undefined || value >= OTHER_FUNCTION) return undefined
  return { value: value === 0 ? 0 : 1, isOutput: direction === 0 }
}

/** Changes the value, the direction or both of each line in `lines`. */
export function setGpioReport(change: { readonly lines: number; readonly value?: number; readonly direction?: number }): Uint8Array {
  const bytes: number[] = [COMMAND.setGpio, 0]
  for (let line = 0; line < GPIO_LINES; line++) {
    const bit = (mask: number | undefined) => (((mask ?? 0) >> line) & 1) as 0 | 1
    const isChanged = bit(change.lines) === 1
    const isInput = bit(change.direction) === 0
    bytes.push(isChanged && change.value !== undefined ? 1 : 0, bit(change.value))
    bytes.push(isChanged && change.direction !== undefined ? 1 : 0, isInput ? 1 : 0)
  }
  return report(...bytes)
}

const PIN_SETTINGS_AT = 22
const FUNCTION_MASK = 0b111
const GPIO_INPUT = 0b1000
const ALTER_PINS = 0x80

export const getSettingsReport = (): Uint8Array => report(COMMAND.getSettings)

/**
 * Turns those pins of `lines` that have another function into inputs and leaves all other pins unchanged. `settings` is the answer to
 * `getSettings`. Returns undefined when no pin has to change.
 */
export function pinsToGpioReport(settings: Uint8Array, lines: number): Uint8Array | undefined {
  const pins = settings.slice(PIN_SETTINGS_AT, PIN_SETTINGS_AT + GPIO_LINES)
  const others = Array.from(pins.keys()).filter((line) => ((lines >> line) & 1) === 1 && ((pins[line] ?? 0) & FUNCTION_MASK) !== 0)
  for (const line of others) pins[line] = GPIO_INPUT
  return others.length === 0 ? undefined : report(COMMAND.setSettings, 0, 0, 0, 0, 0, 0, ALTER_PINS, ...pins)
}
