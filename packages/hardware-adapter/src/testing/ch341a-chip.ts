/** A simulated CH341A that takes packets. Throws for every packet that a real chip does not understand. */
import { type FlashTransfer, serialFlash } from '../drivers/simulated-parts.ts'
import { hex, type LoggedBus, loggedBus } from './bus-log.ts'

const PACKET_BYTES = 32
const SPEEDS = [20_000, 100_000, 400_000, 750_000]

export interface Ch341aChip {
  readonly bus: LoggedBus
  readonly pins: { value: number; direction: number; inputs: number }
  /** The number of data bytes that are acknowledged in one write. */
  refuseFrom: number
  speed(): number
  /** Takes a packet and returns the answer in one piece. Throws for an invalid packet. */
  answer(packet: Uint8Array): Uint8Array
}

export function ch341aChip(): Ch341aChip {
  const bus = loggedBus()
  const selectFlash = serialFlash()
  let speed = 1
  let line = ''
  let address: number | undefined
  let sent: number[] = []
  let selected: FlashTransfer | undefined

  const flushWrite = (): void => {
    if (sent.length > 0 && address !== undefined) bus.partAt(address >> 1)?.write(Uint8Array.from(sent))
    sent = []
  }
  const stop = (): void => {
    flushWrite()
    if (line !== '') bus.log.push(`${line} P`)
    line = ''
    address = undefined
  }
  const start = (): void => {
    flushWrite()
    line = line === '' ? 'S' : `${line} Sr`
    address = undefined
  }
  /** Sends one byte. Returns the acknowledgement bit. */
  const out = (byte: number): number => {
    if (line === '') throw new Error('a byte without a start')
    line += ` ${hex([byte])}`
    const isAddress = address === undefined
    if (isAddress) {
      address = byte
      bus.partAt(byte >> 1)?.start()
    } else sent.push(byte)
    const refused = bus.partAt((address ?? 0) >> 1) === undefined || (!isAddress && sent.length > chip.refuseFrom)
    if (refused) line += ' nak'
    return refused ? 0x80 : 0
  }
  const input = (count: number, last: boolean): number[] => {
    if (address === undefined || !(address & 1)) throw new Error('a read without an address for reading')
    line += ` read ${count}${last ? ' nak' : ''}`
    return Array.from(bus.partAt(address >> 1)?.read(count) ?? new Uint8Array(count))
  }

  const i2c = (bytes: Uint8Array): number[] => {
    const answer: number[] = []
    for (let at = 0; at < bytes.length; at++) {
      const code = bytes[at] ?? 0
      const count = code & 0x3f
      if (code === 0) return answer
      if (code === 0x74) start()
      else if (code === 0x75) stop()
      else if ((code & 0xc0) === 0x80 && count === 0) answer.push(out(bytes[++at] ?? 0))
      else if ((code & 0xc0) === 0x80) for (let byte = 0; byte < count; byte++) out(bytes[++at] ?? 0)
      else if ((code & 0xc0) === 0xc0) answer.push(...input(count || 1, count === 0))
      else if ((code & 0xfc) === 0x60) speed = code & 3
      else throw new Error(`unknown I2C code ${code}`)
    }
    throw new Error('an I2C packet without an end code')
  }

  const setPins = (bytes: Uint8Array): void => {
    for (const code of bytes) {
      if ((code & 0xc0) === 0x80) chip.pins.value = code & 0x3f
      else if ((code & 0xc0) === 0x40) chip.pins.direction = code & 0x3f
      else if (code === 0x20) break
      else throw new Error(`unknown pin code ${code}`)
    }
    const isSelected = (chip.pins.direction & 1) === 1 && (chip.pins.value & 1) === 0
    if (!isSelected) selected?.end()
    selected = isSelected ? (selected ?? selectFlash()) : undefined
  }

  const flip = (byte: number): number => Number.parseInt(byte.toString(2).padStart(8, '0').split('').reverse().join(''), 2)

  const spi = (bytes: Uint8Array): number[] => {
    const flash = selected
    if (!flash) throw new Error('an SPI transfer without a chip select')
    return Array.from(bytes, (byte) => flip(flash.exchange(flip(byte))))
  }

  const chip: Ch341aChip = {
    bus,
    pins: { value: 0, direction: 0, inputs: 0b1000_0000 },
    refuseFrom: Number.POSITIVE_INFINITY,
    speed: () => SPEEDS[speed] ?? 0,
    answer(packet) {
      if (packet.length > PACKET_BYTES) throw new Error(`a packet of ${packet.length} bytes`)
      const [command] = packet
      const rest = packet.subarray(1)
      if (command === 0xaa) return Uint8Array.from(i2c(rest))
      if (command === 0xa8) return Uint8Array.from(spi(rest))
      if (command === 0xa0) return Uint8Array.of((chip.pins.value & chip.pins.direction) | (chip.pins.inputs & ~chip.pins.direction), 0, 0)
      if (command !== 0xab) throw new Error(`unknown command ${command}`)
      setPins(rest)
      return new Uint8Array()
    },
  }
  return chip
}
