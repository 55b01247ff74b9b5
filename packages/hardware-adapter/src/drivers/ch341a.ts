/** The WCH CH341A: I2C, SPI and eight GPIO lines over USB, through the chip's own packets. */

import { ByteBuffer } from '@sluice/kit'
import { AppError, type Clock } from '@sluice/sdk'
import { type Abilities, type Adapter, changedLines, type Gpio, type GpioState, type I2c, type Spi } from '../adapter.ts'
import { adapterLost, dataNotAcknowledged, invalidAnswer, notAcknowledged } from '../adapter-errors.ts'
import type { UsbPort } from '../usb-port.ts'
import {
  addressPacket,
  GPIO_MASK,
  getPinsPacket,
  I2C_SPEED_RANGE,
  isAcknowledged,
  OUTPUT_MASK,
  PACKET_BYTES_MAX,
  pinsPacket,
  readPackets,
  SPI_BYTES_MAX,
  speedPacket,
  spiAnswer,
  spiPacket,
  stopPacket,
  writePackets,
} from './ch341a-packet.ts'
import { KeptOpen } from './kept-open.ts'

const CH341A = 'CH341A'
/** The line of the chip select. */
const CHIP_SELECT = 0b000001
/** The outputs of SPI: chip select, clock and data out. Data in is line 7. */
const SPI_OUTPUTS = 0b101001
/** The SPI clock is fixed and not faster than this. */
const SPI_HZ = 2_000_000

/** Creates the driver. `open` rejects with the error that callers see. */
export const ch341a = (clock: Clock, i2cSpeedHz: number, open: () => Promise<UsbPort>): Adapter => new Ch341a(clock, i2cSpeedHz, open)

/** Sends a packet and returns the first `answerBytes` bytes of the answer; sends only, when that is 0. */
type Exchange = (packet: Uint8Array, answerBytes: number) => Promise<Uint8Array>

class Ch341a implements Adapter {
  readonly name = CH341A
  readonly abilities: Abilities = { i2cSpeedHz: I2C_SPEED_RANGE, spiModes: [0], pullUps: false, volts: [] }
  readonly #device: KeptOpen<{ readonly exchange: Exchange; close(): Promise<void> }>
  /** The chip does not report the directions of its lines, so they are kept here. All lines are inputs at first. */
  #pins: GpioState = { direction: 0, value: CHIP_SELECT }

  constructor(clock: Clock, i2cSpeedHz: number, open: () => Promise<UsbPort>) {
    this.#device = new KeptOpen(clock, async () => {
      const port = await open()
      const exchange = exchangeWith(port)
      try {
        await exchange(speedPacket(i2cSpeedHz), 0)
      } catch (error) {
        await port.close().catch(() => undefined)
        throw error
      }
      return { exchange, close: () => port.close() }
    })
  }

  readonly i2c: I2c = {
    read: (address, length, register) =>
      this.#use(async (exchange) => {
        if (register !== undefined) await writeBytes(exchange, address, Uint8Array.of(register))
        return readBytes(exchange, address, length)
      }),
    write: (address, bytes) =>
      this.#use(async (exchange) => {
        await writeBytes(exchange, address, bytes)
        await exchange(stopPacket(), 0)
      }),
    probe: (address) =>
      this.#use((exchange) =>
        readBytes(exchange, address, 1).then(
          () => true,
          (error: unknown) => {
            if (error instanceof AppError && error.code === 'not_found') return false
            throw error
          },
        ),
      ),
  }

  readonly spi: Spi = {
    transfer: (bytes, { mode, speedHz = SPI_HZ }) => {
      if (mode !== 0) throw new AppError('invalid_request', `The ${CH341A} supports SPI mode 0 only, not mode ${mode}`)
      if (speedHz < SPI_HZ)
        throw new AppError('invalid_request', `The ${CH341A} runs SPI at up to ${SPI_HZ} Hz and has no slower clock; got ${speedHz} Hz`)
      return this.#use(async (exchange) => {
        this.#pins = { direction: this.#pins.direction | SPI_OUTPUTS, value: this.#pins.value | CHIP_SELECT }
        await exchange(pinsPacket({ ...this.#pins, value: this.#pins.value & ~CHIP_SELECT }), 0)
        try {
          return await transferBytes(exchange, bytes)
        } finally {
          await exchange(pinsPacket(this.#pins), 0)
        }
      })
    },
  }

  readonly gpio: Gpio = {
    lines: GPIO_MASK,
    outputs: OUTPUT_MASK,
    read: () => this.#use((exchange) => this.#gpioState(exchange)),
    write: ({ lines, value = this.#pins.value, direction = this.#pins.direction }) =>
      this.#use(async (exchange) => {
        this.#pins = {
          direction: changedLines(lines, this.#pins.direction, direction),
          value: changedLines(lines, this.#pins.value, value),
        }
        await exchange(pinsPacket(this.#pins), 0)
        return this.#gpioState(exchange)
      }),
  }

  close(): Promise<void> {
    return this.#device.close()
  }

  #use<Result>(work: (exchange: Exchange) => Promise<Result>): Promise<Result> {
    return this.#device.use(({ exchange }) => work(exchange))
  }

  async #gpioState(exchange: Exchange): Promise<GpioState> {
    const [value = 0] = await exchange(getPinsPacket(), 1)
    return { direction: this.#pins.direction, value }
  }
}

const exchangeWith =
  (port: UsbPort): Exchange =>
  async (packet, answerBytes) => {
    const lost = (cause: unknown): never => {
      throw adapterLost(CH341A, cause)
    }
    await port.send(packet).catch(lost)
    if (answerBytes === 0) return new Uint8Array()
    const answer = await port.receive(PACKET_BYTES_MAX).catch(lost)
    if (answer.length < answerBytes) throw invalidAnswer(CH341A, `${answer.length} of ${answerBytes} bytes`)
    return answer.subarray(0, answerBytes)
  }

/** Sends a start, the address and the data. Sends a stop only after a failure, so that a read can follow. */
async function writeBytes(exchange: Exchange, address: number, bytes: Uint8Array): Promise<void> {
  await sendAddress(exchange, address, 'write')
  for (const { packet, answerBytes } of writePackets(bytes)) {
    const answer = await exchange(packet, answerBytes)
    if (answer.every(isAcknowledged)) continue
    await exchange(stopPacket(), 0)
    throw dataNotAcknowledged(address)
  }
}

async function readBytes(exchange: Exchange, address: number, length: number): Promise<Uint8Array> {
  await sendAddress(exchange, address, 'read')
  const read = new ByteBuffer()
  for (const { packet, answerBytes } of readPackets(length)) read.append(await exchange(packet, answerBytes))
  return read.bytes()
}

/** The address goes in a packet of its own: the chip would send data in the same packet even when no device acknowledges. */
async function sendAddress(exchange: Exchange, address: number, direction: 'read' | 'write'): Promise<void> {
  const [answer = 0] = await exchange(addressPacket(address, direction), 1)
  if (isAcknowledged(answer)) return
  await exchange(stopPacket(), 0)
  throw notAcknowledged(address)
}

async function transferBytes(exchange: Exchange, bytes: Uint8Array): Promise<Uint8Array> {
  const read = new ByteBuffer()
  for (let at = 0; at < bytes.length; at += SPI_BYTES_MAX) {
    const part = bytes.subarray(at, at + SPI_BYTES_MAX)
    read.append(spiAnswer(await exchange(spiPacket(part), part.length)))
  }
  return read.bytes()
}
