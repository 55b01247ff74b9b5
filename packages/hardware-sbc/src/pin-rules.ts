/** Which of the header's pins are free, by BCM number, and what else the others are. */
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '@sluice/sdk'
import type { SbcModel } from './models.ts'

export const PIN_MAX = 27

/** They are read at start to learn which board is plugged on top. */
const RESERVED = [0, 1]

interface Interface {
  readonly name: string
  readonly pins: Readonly<Record<number, string>>
  /** Below the root; there while the interface is switched on. */
  readonly sign: (model: SbcModel) => string
}

const INTERFACES: readonly Interface[] = [
  { name: 'I2C', pins: { 2: 'SDA', 3: 'SCL' }, sign: () => '/sys/bus/i2c/devices/i2c-1' },
  { name: 'SPI', pins: { 7: 'CE1', 8: 'CE0', 9: 'MISO', 10: 'MOSI', 11: 'SCLK' }, sign: () => '/sys/class/spi_master/spi0' },
  { name: 'the serial port', pins: { 14: 'TXD', 15: 'RXD' }, sign: ({ serialPort }) => serialPort },
]

/** What the model and people read about them. */
export const PIN_RULES = [
  `Pins are named by BCM number, 2 to ${PIN_MAX}; 0 and 1 are reserved for the identity of a plugged-on board.`,
  '2 and 3 are also I2C, 7 to 11 SPI, 14 and 15 the serial port: they are free only while that interface is switched off.',
  "3.3 V only. A written level stays until the next write or the daemon's end. The pin 'led' is the activity LED.",
]

/** A remark on a pin that is free just now. Throws `invalid_request` for one that never is, `conflict` for one that is not. */
export async function checkPin(pin: number, model: SbcModel, root: string): Promise<string | undefined> {
  if (!Number.isInteger(pin) || pin < 0 || pin > PIN_MAX)
    throw new AppError('invalid_request', `There is no GPIO ${pin} on the header: use 2 to ${PIN_MAX}, by BCM number`)
  if (RESERVED.includes(pin))
    throw new AppError('invalid_request', `GPIO ${pin} is reserved: it tells the computer which board is plugged on top`)
  const found = INTERFACES.find(({ pins }) => pin in pins)
  if (!found) return undefined
  const what = `${found.pins[pin]} of ${found.name}`
  if (await exists(join(root, found.sign(model))))
    throw new AppError('conflict', `GPIO ${pin} is ${what}, which is switched on: switch it off (raspi-config) to use the pin`)
  return `GPIO ${pin} is also ${what}, which is switched off`
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )
