/**
 * Finds the devices on an I2C bus. Each address is probed with a read of one byte. Other scanners probe some addresses with an empty
 * write, which can permanently lock certain memory chips.
 */
import { AppError } from '@sluice/sdk'
import type { I2c } from '../adapter.ts'

const FIRST_ADDRESS = 0x08
const LAST_ADDRESS = 0x77
/** This many time-outs in a row mean that the bus itself hangs. Each may take a second. */
const TIMEOUTS_IN_A_ROW_MAX = 3
const TIMEOUTS_MAX = 10

export interface ScannedDevice {
  readonly address: number
  /** Whether a kernel driver owns the device. */
  readonly isHeld: boolean
}

/** Throws `upstream_timeout` when the bus hangs, and `aborted` soon after `signal` aborts. */
export async function scanI2c(i2c: I2c, signal: AbortSignal): Promise<readonly ScannedDevice[]> {
  const found: ScannedDevice[] = []
  let timeouts = 0
  let timeoutsInARow = 0
  for (let address = FIRST_ADDRESS; address <= LAST_ADDRESS; address++) {
    if (signal.aborted) throw new AppError('aborted', 'The scan was aborted')
    try {
      const answer = await i2c.probe(address)
      timeoutsInARow = 0
      if (answer) found.push({ address, isHeld: answer === 'held' })
    } catch (error) {
      // With some bus drivers the probe of an unused address times out.
      timeouts++
      timeoutsInARow++
      if (!(error instanceof AppError) || error.code !== 'upstream_timeout') throw error
      if (timeoutsInARow === TIMEOUTS_IN_A_ROW_MAX || timeouts === TIMEOUTS_MAX) throw error
    }
  }
  return found
}
