/** Decides which pins of the header can be used, by BCM number, and which have another function. */
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '@sluice/sdk'
import type { SbcModel } from './detect-board.ts'

export const PIN_MAX = 27

/** The computer reads these pins at its start to identify the board that is plugged on top. */
const RESERVED = [0, 1]

interface PinInterface {
  readonly name: string
  readonly pins: Readonly<Record<number, string>>
  /** Returns the path that exists while the interface is switched on. */
  readonly pathOf: (model: SbcModel) => string
}

const INTERFACES: readonly PinInterface[] = [
  { name: 'I2C', pins: { 2: 'SDA', 3: 'SCL' }, pathOf: () => '/sys/bus/i2c/devices/i2c-1' },
  { name: 'SPI', pins: { 7: 'CE1', 8: 'CE0', 9: 'MISO', 10: 'MOSI', 11: 'SCLK' }, pathOf: () => '/sys/class/spi_master/spi0' },
  { name: 'the serial port', pins: { 14: 'TXD', 15: 'RXD' }, pathOf: ({ serialPort }) => serialPort },
]

/** The rules as the model and operators read them. */
export const PIN_RULES = [
  `Pins are named by BCM number, 2 to ${PIN_MAX}; 0 and 1 are reserved for the identity of a plugged-on board.`,
  '2 and 3 are also I2C, 7 to 11 SPI, 14 and 15 the serial port: they can be used only while that interface is switched off.',
  "3.3 V only. A written level stays until the next write or the daemon's end. The pin 'led' is the activity LED.",
]

/**
 * Returns a remark when the pin also belongs to an interface that is switched off. Throws `invalid_request` when the pin can never be
 * used, and `conflict` while its interface is switched on.
 */
export async function checkPin(pin: number, model: SbcModel, root: string): Promise<string | undefined> {
  if (!Number.isInteger(pin) || pin < 0 || pin > PIN_MAX)
    throw new AppError('invalid_request', `The header has no GPIO ${pin}; use a BCM number from 2 to ${PIN_MAX}`)
  if (RESERVED.includes(pin))
    throw new AppError('invalid_request', `GPIO ${pin} is reserved: it identifies the board that is plugged on top`)
  const found = INTERFACES.find(({ pins }) => pin in pins)
  if (!found) return undefined
  const role = `${found.pins[pin]} of ${found.name}`
  if (await exists(join(root, found.pathOf(model))))
    throw new AppError('conflict', `GPIO ${pin} is ${role}, which is switched on; switch it off with raspi-config to use the pin`)
  return `GPIO ${pin} is also ${role}, which is switched off`
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )
