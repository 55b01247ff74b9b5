/** The WCH CH341A: I2C, SPI and eight GPIO lines over USB, by the chip's own packets. */

import { ByteBuffer } from '@sluice/kit'
import { AppError, type Clock } from '@sluice/sdk'
import type { Adapter, GpioState, Spi } from './adapter.ts'
import { dataNotAcknowledged, garbled, lost, notAcknowledged } from './bus-error.ts'
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
import { keptOpen } from './kept-open.ts'
import type { UsbPort } from './native.ts'

const CH341A = 'CH341A'
/** Lines of SPI: chip select, clock, data out. Data in is line 7. */
const CHIP_SELECT = 0b000001
const SPI_OUTPUTS = 0b101001
/** The clock cannot be chosen and is no faster than this. */
const SPI_HZ = 2_000_000

export interface Ch341aOptions {
  readonly clock: Pick<Clock, 'sleep'>
  readonly i2cSpeedHz: number
  /** Rejects with the error to show. */
  open(): Promise<UsbPort>
}

export function ch341a({ clock, i2cSpeedHz, open }: Ch341aOptions): Adapter {
  /** The chip does not tell its directions, so they are ours; it starts with inputs alone. */
  let pins: GpioState = { direction: 0, value: CHIP_SELECT }
  const device = keptOpen(clock, async () => {
    const port = await open()
    const link = linkTo(port)
    try {
      await link(speedPacket(i2cSpeedHz), 0)
    } catch (error) {
      await port.close().catch(() => undefined)
      throw error
    }
    return { link, close: () => port.close() }
  })
  const use = <Result>(work: (link: Link) => Promise<Result>): Promise<Result> => device.use(({ link }) => work(link))

  const spi: Spi = {
    transfer: (bytes, { mode, speedHz = SPI_HZ }) => {
      if (mode !== 0) throw new AppError('invalid_request', `The ${CH341A} speaks SPI mode 0 only, not mode ${mode}`)
      if (speedHz < SPI_HZ)
        throw new AppError('invalid_request', `The ${CH341A} runs SPI at up to ${SPI_HZ} Hz, and no slower clock can be chosen`)
      return use(async (link) => {
        pins = { direction: pins.direction | SPI_OUTPUTS, value: pins.value | CHIP_SELECT }
        await link(pinsPacket({ ...pins, value: pins.value & ~CHIP_SELECT }), 0)
        try {
          return await exchange(link, bytes)
        } finally {
          await link(pinsPacket(pins), 0)
        }
      })
    },
  }

  return {
    name: CH341A,
    abilities: { i2cSpeedHz: I2C_SPEED_RANGE, spiModes: [0], pullUps: false, volts: [] },
    i2c: {
      read: (address, length, register) =>
        use(async (link) => {
          if (register !== undefined) await writePart(link, address, Uint8Array.of(register))
          return readPart(link, address, length)
        }),
      write: (address, bytes) =>
        use(async (link) => {
          await writePart(link, address, bytes)
          await link(stopPacket(), 0)
        }),
      probe: (address) =>
        use((link) =>
          readPart(link, address, 1).then(
            () => true,
            (error: unknown) => {
              if (error instanceof AppError && error.code === 'not_found') return false
              throw error
            },
          ),
        ),
    },
    spi,
    gpio: {
      lines: GPIO_MASK,
      outputs: OUTPUT_MASK,
      read: () => use(async (link) => ({ direction: pins.direction, value: await levels(link) })),
      write: ({ lines, value = pins.value, direction = pins.direction }) =>
        use(async (link) => {
          const merged = (before: number, after: number) => (before & ~lines) | (after & lines)
          pins = { direction: merged(pins.direction, direction), value: merged(pins.value, value) }
          await link(pinsPacket(pins), 0)
          return { direction: pins.direction, value: await levels(link) }
        }),
    },
    close: () => device.close(),
  }
}

/** Sends a packet and takes that many bytes in answer. */
type Link = (packet: Uint8Array, answers: number) => Promise<Uint8Array>

const linkTo =
  (port: UsbPort): Link =>
  async (packet, answers) => {
    const gone = (cause: unknown): never => {
      throw lost(CH341A, cause)
    }
    await port.send(packet).catch(gone)
    if (answers === 0) return new Uint8Array()
    const answer = await port.receive(PACKET_BYTES_MAX).catch(gone)
    if (answer.length < answers) throw garbled(CH341A, `with ${answer.length} of ${answers} bytes`)
    return answer.subarray(0, answers)
  }

/** A start, the address and the data; no stop, but after a failure. */
async function writePart(link: Link, address: number, bytes: Uint8Array): Promise<void> {
  await begin(link, address, 'write')
  for (const { packet, answers } of writePackets(bytes)) {
    const answer = await link(packet, answers)
    if (answer.every(isAcknowledged)) continue
    await link(stopPacket(), 0)
    throw dataNotAcknowledged(address)
  }
}

async function readPart(link: Link, address: number, length: number): Promise<Uint8Array> {
  await begin(link, address, 'read')
  const read = new ByteBuffer()
  for (const { packet, answers } of readPackets(length)) read.append(await link(packet, answers))
  return read.bytes()
}

/** The address alone: were the data sent along, the chip would go on with it though nobody listens. */
async function begin(link: Link, address: number, direction: 'read' | 'write'): Promise<void> {
  const [answer = 0] = await link(addressPacket(address, direction), 1)
  if (isAcknowledged(answer)) return
  await link(stopPacket(), 0)
  throw notAcknowledged(address)
}

async function exchange(link: Link, bytes: Uint8Array): Promise<Uint8Array> {
  const read = new ByteBuffer()
  for (let at = 0; at < bytes.length; at += SPI_BYTES_MAX) {
    const part = bytes.subarray(at, at + SPI_BYTES_MAX)
    read.append(spiAnswer(await link(spiPacket(part), part.length)))
  }
  return read.bytes()
}

async function levels(link: Link): Promise<number> {
  const [value = 0] = await link(getPinsPacket(), 1)
  return value
}
