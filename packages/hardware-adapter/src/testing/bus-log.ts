/** A simulated I2C bus that logs its transactions: S is a start, Sr a repeated start, P a stop. */
import { eeprom, type I2cPart, thermometer } from '../drivers/simulated-parts.ts'

export const THERMOMETER = 0x48
export const EEPROM = 0x50

export interface LoggedBus {
  readonly log: string[]
  partAt(address: number): I2cPart | undefined
}

export function loggedBus(): LoggedBus {
  const parts = new Map([
    [THERMOMETER, thermometer()],
    [EEPROM, eeprom()],
  ])
  return { log: [], partAt: (address) => parts.get(address) }
}

export const hex = (bytes: Iterable<number>): string => Buffer.from(Array.from(bytes)).toString('hex')
