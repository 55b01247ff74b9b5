/** A simulated adapter with simulated parts, for trying the tools without hardware. */
import { type Adapter, changedLines, type GpioState } from '../adapter.ts'
import { notAcknowledged } from '../adapter-errors.ts'
import { eeprom, type I2cPart, serialFlash, thermometer } from './simulated-parts.ts'

const THERMOMETER = 0x48
const EEPROM = 0x50
const LINES = 0xff

/** Creates the adapter. Its inputs are high with pull-ups and low without. */
export function simulated({ pullUps }: { readonly pullUps: boolean }): Adapter {
  const parts = new Map<number, I2cPart>([
    [THERMOMETER, thermometer()],
    [EEPROM, eeprom()],
  ])
  const partAt = (address: number): I2cPart => {
    const part = parts.get(address)
    if (!part) throw notAcknowledged(address)
    part.start()
    return part
  }
  const selectFlash = serialFlash()
  let pins: GpioState = { direction: 0, value: 0 }
  const state = (): GpioState => ({
    direction: pins.direction,
    value: (pins.value & pins.direction) | (pullUps ? LINES & ~pins.direction : 0),
  })

  return {
    name: 'Simulated adapter',
    abilities: {
      i2cSpeedHz: [10_000, 1_000_000],
      spiSpeedHz: [10_000, 50_000_000],
      spiModes: [0, 1, 2, 3],
      pullUps: true,
      volts: [3.3, 5],
    },
    i2c: {
      async read(address, length, register) {
        const part = partAt(address)
        if (register !== undefined) part.write(Uint8Array.of(register))
        return part.read(length)
      },
      async write(address, bytes) {
        partAt(address).write(bytes)
      },
      async probe(address) {
        if (parts.has(address)) partAt(address).read(1)
        return parts.has(address)
      },
    },
    spi: {
      async transfer(bytes) {
        const flash = selectFlash()
        const received = bytes.map((byte) => flash.exchange(byte))
        flash.end()
        return received
      },
    },
    gpio: {
      lines: LINES,
      outputs: LINES,
      read: async () => state(),
      async write({ lines, value = pins.value, direction = pins.direction }) {
        pins = { direction: changedLines(lines, pins.direction, direction), value: changedLines(lines, pins.value, value) }
        return state()
      },
    },
    async close() {},
  }
}
