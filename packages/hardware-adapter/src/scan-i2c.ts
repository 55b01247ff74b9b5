/**
 * Who answers on an I2C bus. Each address is asked by a read of one byte, none by an empty write: that would be the kinder
 * question to 0x30 to 0x37 and 0x50 to 0x5f for some, but it locks certain memories there for good and upsets others.
 */
import { AppError } from '@sluice/sdk'
import type { I2c } from './adapter.ts'

const FIRST = 0x08
const LAST = 0x77
/** Then it is the bus that hangs; each may take a second. */
const TIMEOUTS_IN_A_ROW_MAX = 3
const TIMEOUTS_MAX = 10

export interface Answering {
  readonly address: number
  /** By a driver of the kernel. */
  readonly held: boolean
}

/** Throws `upstream_timeout` for a bus that hangs, and ends soon after `signal` aborts. */
export async function scanI2c(i2c: I2c, signal: AbortSignal): Promise<readonly Answering[]> {
  const found: Answering[] = []
  let timeouts = 0
  let inARow = 0
  for (let address = FIRST; address <= LAST; address++) {
    if (signal.aborted) throw new AppError('aborted', 'The scan was aborted')
    try {
      const answer = await i2c.probe(address)
      inARow = 0
      if (answer) found.push({ address, held: answer === 'held' })
    } catch (error) {
      // Some bus drivers let the time run out where nobody acknowledges.
      timeouts++
      inARow++
      if (!(error instanceof AppError) || error.code !== 'upstream_timeout') throw error
      if (inARow === TIMEOUTS_IN_A_ROW_MAX || timeouts === TIMEOUTS_MAX) throw error
    }
  }
  return found
}
