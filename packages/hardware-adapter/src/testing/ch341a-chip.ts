/** A simulated CH341A that takes packets. Throws for every packet that a real chip does not understand. */
import { type FlashTransfer, serialFlash } from '../drivers/simulated-parts.ts'
import { hex, type LoggedBus, loggedBus } from './bus-log.ts'

const PACKET_BYTES = 32
const SPEEDS = [20_000, 100_000, 400_000, 750_000]

export class Ch341aChip {
  readonly bus: LoggedBus = loggedBus()
  /** Masks of the lines; a 1 in `direction` is an output, `inputs` are the levels applied from outside. */
  readonly pins = { value: 0, direction: 0, inputs: 0b1000_0000 }
  /** The number of data bytes that are acknowledged in one write. */
  refuseFrom = Number.POSITIVE_INFINITY
  readonly #selectFlash = serialFlash()
  /** The transfer under the current chip select. */
  #selected: FlashTransfer | undefined
  #speed = 1
  /** The log line of the current I2C transaction; empty when the bus is idle. */
  #line = ''
  /** The address byte since the last start. */
  #address: number | undefined
  #written: number[] = []

  /** Returns the I2C clock in hertz. */
  speed(): number {
    return SPEEDS[this.#speed] ?? 0
  }

  /** Takes a packet and returns the answer in one piece. Throws for an invalid packet. */
  answer(packet: Uint8Array): Uint8Array {
    if (packet.length > PACKET_BYTES) throw new Error(`a packet of ${packet.length} bytes`)
    const [command] = packet
    const rest = packet.subarray(1)
    if (command === 0xaa) return Uint8Array.from(this.#runI2c(rest))
    if (command === 0xa8) return Uint8Array.from(this.#runSpi(rest))
    if (command === 0xa0) return Uint8Array.of((this.pins.value & this.pins.direction) | (this.pins.inputs & ~this.pins.direction), 0, 0)
    if (command !== 0xab) throw new Error(`unknown command ${command}`)
    this.#setPins(rest)
    return new Uint8Array()
  }

  #runI2c(bytes: Uint8Array): number[] {
    const answer: number[] = []
    for (let at = 0; at < bytes.length; at++) {
      const code = bytes[at] ?? 0
      const count = code & 0x3f
      if (code === 0) return answer
      if (code === 0x74) this.#start()
      else if (code === 0x75) this.#stop()
      else if ((code & 0xc0) === 0x80 && count === 0) answer.push(this.#send(bytes[++at] ?? 0))
      else if ((code & 0xc0) === 0x80) for (let byte = 0; byte < count; byte++) this.#send(bytes[++at] ?? 0)
      else if ((code & 0xc0) === 0xc0) answer.push(...this.#receive(count || 1, count === 0))
      else if ((code & 0xfc) === 0x60) this.#speed = code & 3
      else throw new Error(`unknown I2C code ${code}`)
    }
    throw new Error('an I2C packet without an end code')
  }

  #start(): void {
    this.#flushWrite()
    this.#line = this.#line === '' ? 'S' : `${this.#line} Sr`
    this.#address = undefined
  }

  #stop(): void {
    this.#flushWrite()
    if (this.#line !== '') this.bus.log.push(`${this.#line} P`)
    this.#line = ''
    this.#address = undefined
  }

  /** Passes the bytes since the last start to the part. */
  #flushWrite(): void {
    if (this.#written.length > 0 && this.#address !== undefined) this.bus.partAt(this.#address >> 1)?.write(Uint8Array.from(this.#written))
    this.#written = []
  }

  /** Sends one byte. Returns the acknowledgement bit. */
  #send(byte: number): number {
    if (this.#line === '') throw new Error('a byte without a start')
    this.#line += ` ${hex([byte])}`
    const isAddress = this.#address === undefined
    if (isAddress) {
      this.#address = byte
      this.bus.partAt(byte >> 1)?.start()
    } else this.#written.push(byte)
    const hasPart = this.bus.partAt((this.#address ?? 0) >> 1) !== undefined
    const isRefused = !hasPart || (!isAddress && this.#written.length > this.refuseFrom)
    if (isRefused) this.#line += ' nak'
    return isRefused ? 0x80 : 0
  }

  #receive(count: number, isLast: boolean): number[] {
    if (this.#address === undefined || !(this.#address & 1)) throw new Error('a read without an address for reading')
    this.#line += ` read ${count}${isLast ? ' nak' : ''}`
    return Array.from(this.bus.partAt(this.#address >> 1)?.read(count) ?? new Uint8Array(count))
  }

  #setPins(bytes: Uint8Array): void {
    for (const code of bytes) {
      if ((code & 0xc0) === 0x80) this.pins.value = code & 0x3f
      else if ((code & 0xc0) === 0x40) this.pins.direction = code & 0x3f
      else if (code === 0x20) break
      else throw new Error(`unknown pin code ${code}`)
    }
    const isSelected = (this.pins.direction & 1) === 1 && (this.pins.value & 1) === 0
    if (!isSelected) this.#selected?.end()
    this.#selected = isSelected ? (this.#selected ?? this.#selectFlash()) : undefined
  }

  #runSpi(bytes: Uint8Array): number[] {
    const flash = this.#selected
    if (!flash) throw new Error('an SPI transfer without a chip select')
    return Array.from(bytes, (byte) => reversed(flash.exchange(reversed(byte))))
  }
}

/** The chip sends the lowest bit first. Written without the driver's function, so that the tests do not share its errors. */
const reversed = (byte: number): number => Number.parseInt(byte.toString(2).padStart(8, '0').split('').reverse().join(''), 2)
