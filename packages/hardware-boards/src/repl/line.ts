/** The line to a board's REPL: what it says, and sending to a board that may hang and take nothing. */

import { signalScope } from '@sluice/kit'
import { AppError, type Clock } from '@sluice/sdk'
import type { Port } from '../devices.ts'
import type { Incoming, Wait } from './incoming.ts'

export interface Line {
  /** The board, for sentences. */
  readonly name: string
  readonly port: Port
  readonly incoming: Incoming
  readonly clock: Clock
}

/** Throws `upstream_timeout` when the bytes are not taken in time, `unavailable` when the board is unplugged, `aborted`. */
export async function send({ name, port, clock }: Line, bytes: string | Uint8Array, { untilMs, signal }: Wait): Promise<void> {
  using wait = signalScope([signal])
  const late = clock.sleep(Math.max(0, untilMs - clock.monotonicMs()), wait.signal).then(() => {
    if (signal.aborted) throw new AppError('aborted', 'The call was aborted')
    throw new AppError('upstream_timeout', `${name} does not take what is sent to it: it hangs; press its reset button`)
  })
  const sending = port.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
  await Promise.race([sending, late])
}
