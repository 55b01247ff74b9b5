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

export interface Mcp2221Pin {
  value: 0 | 1
  /** 1 is an input. */
  input: 0 | 1
  /** The function of the pin; 0 is GPIO. */
  usage: number
}

export class Mcp2221Chip {
  readonly bus: LoggedBus = loggedBus()
  readonly faults: ChipFaults = {}
  readonly pins: readonly Mcp2221Pin[] = [0, 1, 2, 3].map((line) => ({ value: 0, input: 1, usage: line === 2 ? 1 : 0 }))
  #divider = 0x75
  /** The state of the I2C engine. */
  #state = 0
  #notAcknowledged = false
  /** The bytes of a write whose reports are not complete yet. */
  #written: number[] = []
  /** The bytes of a read that are not fetched yet. */
  #pending: Uint8Array | undefined

  /** Returns the I2C clock in hertz. */
  speed(): number {
    return 12_000_000 / (this.#divider + 3)
  }

  /** Takes a report of 64 bytes and returns the answer report. Throws for a report that the data sheet does not allow. */
  answer(report: Uint8Array): Uint8Array {
    if (report.length !== REPORT_BYTES) throw new Error(`a report of ${report.length} bytes`)
    const out = new Uint8Array(REPORT_BYTES)
    const [command = 0] = report
    out[0] = command
    if (command === 0x10) this.#status(report, out)
    else if (command === 0x90 || command === 0x94) this.#write(report, out)
    else if (command === 0x91 || command === 0x93) this.#read(report, out)
    else if (command === 0x40) this.#getData(out)
    else if (command === 0x50) this.#setPins(report, out)
    else if (command === 0x51) this.#getPins(out)
    else if (command === 0x60) this.#setSettings(report)
    else if (command === 0x61) this.#getSettings(out)
    else throw new Error(`unknown command ${command}`)
    return out
  }

  #status(report: Uint8Array, out: Uint8Array): void {
    if (report[2] === 0x10) {
      out[2] = this.#state === 0 ? 0x11 : 0x10
      if (this.faults.low === undefined) this.#state = 0
      this.#notAcknowledged = false
      this.#pending = undefined
      this.#written = []
    }
    if (report[3] === 0x20) {
      out[3] = this.#state === 0 ? 0x20 : 0x21
      if (this.#state === 0) this.#divider = report[4] ?? 0
    }
    out[8] = this.#state
    out[14] = this.#divider
    out[20] = this.#notAcknowledged ? 0x40 : 0
    out[22] = this.faults.low === 'SCL' ? 0 : 1
    out[23] = this.faults.low === 'SDA' ? 0 : 1
  }

  /** Answers as busy when a fault asks for it. */
  #isBusy(out: Uint8Array): boolean {
    if (this.faults.low !== undefined) this.#state = 0x12
    if (this.faults.busy) this.faults.busy--
    else if (this.faults.low === undefined) return false
    out[1] = 1
    out[2] = this.#state
    return true
  }

  #write(report: Uint8Array, out: Uint8Array): void {
    if (this.#isBusy(out)) return
    const [command, low = 0, high = 0, address = 0] = report
    const length = low + 256 * high
    if (address & 1) throw new Error('a write to an address for reading')
    if (this.#state !== 0) throw new Error(`a write while the engine is in state ${this.#state}`)
    this.#written.push(...report.subarray(4, 4 + Math.min(DATA_BYTES, length - this.#written.length)))
    if (this.#written.length < length) return
    const part = this.bus.partAt(address >> 1)
    this.bus.log.push(`S ${hex([address])}${part ? '' : ' nak'} ${hex(this.#written)}${command === 0x90 ? ' P' : ''}`)
    this.#notAcknowledged = part === undefined
    this.#state = part ? (this.faults.writeEndsIn ?? (command === 0x94 ? 0x45 : 0)) : 0x25
    part?.write(Uint8Array.from(this.#written))
    this.#written = []
  }

  #read(report: Uint8Array, out: Uint8Array): void {
    if (this.#isBusy(out)) return
    const [command, low = 0, high = 0, address = 0] = report
    const length = low + 256 * high
    if (!(address & 1)) throw new Error('a read from an address for writing')
    if (command === 0x93 && this.#state !== 0x45) throw new Error('a repeated start without a transfer before it')
    if (command === 0x91 && this.#state !== 0) throw new Error(`a start while the engine is in state ${this.#state}`)
    const part = this.bus.partAt(address >> 1)
    this.bus.log.push(`${command === 0x93 ? 'Sr' : 'S'} ${hex([address])}${part ? '' : ' nak'} read ${length} P`)
    this.#notAcknowledged = part === undefined
    this.#state = part ? 0x55 : 0x25
    part?.start()
    this.#pending = part?.read(length)
  }

  #getData(out: Uint8Array): void {
    out[2] = this.#state
    if (!this.#pending || this.faults.slowData) {
      if (this.faults.slowData) this.faults.slowData--
      out[1] = 0x41
      out[3] = 127
      return
    }
    const data = this.#pending.subarray(0, DATA_BYTES)
    const left = this.#pending.subarray(data.length)
    out[2] = left.length > 0 ? 0x54 : 0x55
    out[3] = data.length
    out.set(data, 4)
    this.#pending = left.length > 0 ? left : undefined
    if (left.length === 0) this.#state = 0
  }

  #setPins(report: Uint8Array, out: Uint8Array): void {
    for (const [line, pin] of this.pins.entries()) {
      const change = report.subarray(2 + 4 * line, 6 + 4 * line)
      const [alterValue, value, alterDirection, input] = change
      if ((alterValue || alterDirection) && pin.usage !== 0) throw new Error(`GPIO of pin ${line}, which has another function`)
      if (alterValue) pin.value = value === 0 ? 0 : 1
      if (alterDirection) pin.input = input === 0 ? 0 : 1
      out.set(change, 2 + 4 * line)
    }
  }

  #getPins(out: Uint8Array): void {
    for (const [line, { value, input, usage }] of this.pins.entries()) out.set(usage === 0 ? [value, input] : [0xee, 0xef], 2 + 2 * line)
  }

  #getSettings(out: Uint8Array): void {
    out.set([18, 4], 2)
    for (const [line, { usage, input, value }] of this.pins.entries()) out[22 + line] = usage | (input << 3) | (value << 4)
  }

  #setSettings(report: Uint8Array): void {
    if (report.subarray(2, 7).some((byte) => byte !== 0)) throw new Error('a settings report changes more than the pins')
    for (const [line, pin] of this.pins.entries()) {
      const setting = report[8 + line] ?? 0
      pin.usage = setting & 7
      pin.input = setting & 8 ? 1 : 0
      pin.value = setting & 16 ? 1 : 0
    }
  }
}
