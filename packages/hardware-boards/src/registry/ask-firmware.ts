/** Asks whoever is on a port what it is, in the line protocol. */
import type { Clock } from '@sluice/sdk'
import type { Port } from '../devices.ts'
import { capabilitiesOf } from '../protocol/answers.ts'
import { createLink } from '../protocol/link.ts'
import { NO_FAMILY } from './find-boards.ts'

/** The name of the board, `device` for one that answers and does not say; undefined: nobody answers. Never throws. */
export async function askFirmware(open: () => Promise<Port>, clock: Clock, signal: AbortSignal): Promise<string | undefined> {
  try {
    const port = await open()
    const link = createLink({ port, name: 'the port', clock })
    try {
      await link.hello(signal, 1)
      const known = link.request('capabilities', {}, { signal, repeatable: true }).then((result) => capabilitiesOf('the port', result))
      return await known.then(
        ({ board }) => board ?? NO_FAMILY,
        () => NO_FAMILY,
      )
    } finally {
      await link.close()
    }
  } catch {
    return undefined
  }
}
