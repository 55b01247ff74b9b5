/** The packets of a WCH CH341A: at most 32 bytes, the command first. */

export const PACKET_BYTES_MAX = 32

const I2C_STREAM = 0xaa
const SPI_STREAM = 0xa8
const PIN_STREAM = 0xab
const GET_PINS = 0xa0
const END = 0x00

const I2C = { start: 0x74, stop: 0x75, out: 0x80, in: 0xc0, set: 0x60 } as const
const PINS = { out: 0x80, direction: 0x40, end: 0x20, mask: 0x3f } as const

/** The four I2C clocks of the chip, slowest first. */
const I2C_CLOCKS_HZ = [20_000, 100_000, 400_000, 750_000] as const
export const I2C_SPEED_RANGE = [I2C_CLOCKS_HZ[0], I2C_CLOCKS_HZ[3]] as const

/** The data bytes in one packet of a write. Each byte follows a command of its own, so that its acknowledgement is returned. */
const CHECKED_BYTES_MAX = 14
/** The bytes that one packet reads. */
export const READ_BYTES_MAX = 32
/** The bytes that one packet transfers over SPI. */
export const SPI_BYTES_MAX = PACKET_BYTES_MAX - 1

const i2c = (...bytes: readonly number[]): Uint8Array => Uint8Array.of(I2C_STREAM, ...bytes, END)

/** Selects the fastest clock of the chip that does not exceed `speedHz`. */
export const speedPacket = (speedHz: number): Uint8Array => {
  const faster = I2C_CLOCKS_HZ.findIndex((clock) => clock > speedHz)
  return i2c(I2C.set | (faster < 0 ? I2C_CLOCKS_HZ.length - 1 : Math.max(0, faster - 1)))
}

/** A start or repeated start and the address. The chip answers with one byte for `isAcknowledged`. */
export const addressPacket = (address: number, direction: 'read' | 'write'): Uint8Array =>
  i2c(I2C.start, I2C.out, (address << 1) | (direction === 'read' ? 1 : 0))

export const stopPacket = (): Uint8Array => i2c(I2C.stop)

/** The packets of a write. The chip answers with one byte for each data byte, for `isAcknowledged`. */
export function* writePackets(bytes: Uint8Array): Generator<{ readonly packet: Uint8Array; readonly answerBytes: number }> {
  for (let at = 0; at < bytes.length; at += CHECKED_BYTES_MAX) {
    const part = bytes.subarray(at, at + CHECKED_BYTES_MAX)
    yield { packet: i2c(...Array.from(part).flatMap((byte) => [I2C.out, byte])), answerBytes: part.length }
  }
}

/** The packets of a read. Every byte but the last is acknowledged, as I2C requires at the end of a read. */
export function* readPackets(length: number): Generator<{ readonly packet: Uint8Array; readonly answerBytes: number }> {
  let left = length
  for (; left > READ_BYTES_MAX; left -= READ_BYTES_MAX) yield { packet: i2c(I2C.in | READ_BYTES_MAX), answerBytes: READ_BYTES_MAX }
  yield { packet: i2c(...(left > 1 ? [I2C.in | (left - 1)] : []), I2C.in, I2C.stop), answerBytes: left }
}

const NOT_ACKNOWLEDGED = 0x80
export const isAcknowledged = (answer: number): boolean => (answer & NOT_ACKNOWLEDGED) === 0

/** The chip sends the lowest bit first, while SPI devices expect the highest bit first. */
export const spiPacket = (bytes: Uint8Array): Uint8Array => Uint8Array.of(SPI_STREAM, ...Array.from(bytes, reversedBits))
export const spiAnswer = (bytes: Uint8Array): Uint8Array => bytes.map(reversedBits)

export function reversedBits(byte: number): number {
  let reversed = 0
  for (let bit = 0; bit < 8; bit++) reversed |= ((byte >> bit) & 1) << (7 - bit)
  return reversed
}

export const GPIO_MASK = 0xff
/** Lines 6 and 7 are inputs only. */
export const OUTPUT_MASK = PINS.mask

/** Sets the levels of lines 0 to 5, then their directions (1 is an output). */
export const pinsPacket = ({ value, direction }: { readonly value: number; readonly direction: number }): Uint8Array =>
  Uint8Array.of(PIN_STREAM, PINS.out | (value & PINS.mask), PINS.direction | (direction & PINS.mask), PINS.end)

/** Reads the lines. The first byte of the answer holds the levels of all eight lines. */
export const getPinsPacket = (): Uint8Array => Uint8Array.of(GET_PINS)
