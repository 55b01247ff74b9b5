/** A simulated MCP2221 that takes reports as its data sheet describes. Throws for every report that a real chip does not understand. */
import { hex, type LoggedBus, loggedBus } from './bus-log.ts'

const REPORT_BYTES = 64
const DATA_BYTES = 60

export interface ChipFaults {
  /** The bus line that is held low. */
  low?: 'SCL' | 'SDA'
  /** The number of transfer reports to reject as busy. */
  busy?: number
  /** The state of the engine after a write. */
  writeEndsIn?: number
  /** The number of polls for data to answer without data. */
  slowData?: number
}

export interface Mcp2221Chip {
  readonly bus: LoggedBus
  readonly faults: ChipFaults
  /** `usage` 0 is GPIO; `input` 1 is an input. */
  readonly pins: { value: 0 | 1; input: 0 | 1; usage: number }[]
  /** Returns the I2C clock in hertz. */
  speed(): number
  /** Takes a report of 64 bytes and returns the answer report. Throws for a report that the data sheet does not allow. */
  answer(report: Uint8Array): Uint8Array
}

export function mcp2221Chip(): Mcp2221Chip {
  const bus = loggedBus()
  const faults: ChipFaults = {}
  const pins: Mcp2221Chip['pins'] = [0, 1, 2, 3].map((line) => ({ value: 0, input: 1, usage: line === 2 ? 1 : 0 }))
  let divider = 0x75
  let state = 0
  let notAcknowledged = false
  let written: number[] = []
  let pending: Uint8Array | undefined

  const status = (report: Uint8Array, out: Uint8Array): void => {
    if (report[2] === 0x10) {
      out[2] = state === 0 ? 0x11 : 0x10
      if (faults.low === undefined) state = 0
      notAcknowledged = false
      pending = undefined
      written = []
    }
    if (report[3] === 0x20) {
      out[3] = state === 0 ? 0x20 : 0x21
      if (state === 0) divider = report[4] ?? 0
    }
    out[8] = state
    out[14] = divider
    out[20] = notAcknowledged ? 0x40 : 0
    out[22] = faults.low === 'SCL' ? 0 : 1
    out[23] = faults.low === 'SDA' ? 0 : 1
  }

  const isBusy = (out: Uint8Array): boolean => {
    if (faults.low !== undefined) state = 0x12
    if (faults.busy) faults.busy--
    else if (faults.low === undefined) return false
    out[1] = 1
    out[2] = state
    return true
  }

  const write = (report: Uint8Array, out: Uint8Array): void => {
    if (isBusy(out)) return
    const [command, low = 0, high = 0, address = 0] = report
    const length = low + 256 * high
    if (address & 1) throw new Error('a write to an address for reading')
    if (state !== 0) throw new Error(`a write while the engine is in state ${state}`)
    const part = report.subarray(4, 4 + Math.min(DATA_BYTES, length - written.length))
    written.push(...part)
    if (written.length < length) return
    const device = bus.partAt(address >> 1)
    bus.log.push(`S ${hex([address])}${device ? '' : ' nak'} ${hex(written)}${command === 0x90 ? ' P' : ''}`)
    notAcknowledged = device === undefined
    state = device ? (faults.writeEndsIn ?? (command === 0x94 ? 0x45 : 0)) : 0x25
    device?.write(Uint8Array.from(written))
    written = []
  }

  const read = (report: Uint8Array, out: Uint8Array): void => {
    if (isBusy(out)) return
    const [command, low = 0, high = 0, address = 0] = report
    if (!(address & 1)) throw new Error('a read from an address for writing')
    if (command === 0x93 && state !== 0x45) throw new Error('a repeated start without a transfer before it')
    if (command === 0x91 && state !== 0) throw new Error(`a start while the engine is in state ${state}`)
    const device = bus.partAt(address >> 1)
    bus.log.push(`${command === 0x93 ? 'Sr' : 'S'} ${hex([address])}${device ? '' : ' nak'} read ${low + 256 * high} P`)
    notAcknowledged = device === undefined
    state = device ? 0x55 : 0x25
    device?.start()
    pending = device?.read(low + 256 * high)
  }

  const data = (out: Uint8Array): void => {
    out[2] = state
    if (!pending || faults.slowData) {
      if (faults.slowData) faults.slowData--
      out[1] = 0x41
      out[3] = 127
      return
    }
    const part = pending.subarray(0, DATA_BYTES)
    pending = pending.subarray(part.length)
    out[2] = pending.length > 0 ? 0x54 : 0x55
    out[3] = part.length
    out.set(part, 4)
    if (pending.length > 0) return
    pending = undefined
    state = 0
  }

  const setPins = (report: Uint8Array, out: Uint8Array): void => {
    for (const [line, pin] of pins.entries()) {
      const [alterValue, value, alterDirection, input] = report.subarray(2 + 4 * line, 6 + 4 * line)
      if ((alterValue || alterDirection) && pin.usage !== 0) throw new Error(`GPIO of pin ${line}, which has another function`)
      if (alterValue) pin.value = value === 0 ? 0 : 1
      if (alterDirection) pin.input = input === 0 ? 0 : 1
      out.set(report.subarray(2 + 4 * line, 6 + 4 * line), 2 + 4 * line)
    }
  }

  const settings = (report: Uint8Array, out: Uint8Array): void => {
    if (report[0] === 0x61) {
      out.set([18, 4], 2)
      for (const [line, { usage, input, value }] of pins.entries()) out[22 + line] = usage | (input << 3) | (value << 4)
      return
    }
    if (report.subarray(2, 7).some((byte) => byte !== 0)) throw new Error('a settings report changes more than the pins')
    for (const [line, pin] of pins.entries()) {
      const given = report[8 + line] ?? 0
      pin.usage = given & 7
      pin.input = given & 8 ? 1 : 0
      pin.value = given & 16 ? 1 : 0
    }
  }

  return {
    bus,
    faults,
    pins,
    speed: () => 12_000_000 / (divider + 3),
    answer(report) {
      if (report.length !== REPORT_BYTES) throw new Error(`a report of ${report.length} bytes`)
      const out = new Uint8Array(REPORT_BYTES)
      const [command = 0] = report
      out[0] = command
      if (command === 0x10) status(report, out)
      else if (command === 0x90 || command === 0x94) write(report, out)
      else if (command === 0x91 || command === 0x93) read(report, out)
      else if (command === 0x40) data(out)
      else if (command === 0x50) setPins(report, out)
      else if (command === 0x51)
        for (const [line, { value, input, usage }] of pins.entries()) out.set(usage === 0 ? [value, input] : [0xee, 0xef], 2 + 2 * line)
      else if (command === 0x60 || command === 0x61) settings(report, out)
      else throw new Error(`unknown command ${command}`)
      return out
    },
  }
}
