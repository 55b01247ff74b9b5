/** `sluice pair new`: a one-time code for a new device. */
import { newPairingCode } from '@sluice/runtime'
import type { CliContext } from '../context.ts'
import { roleOption } from '../role-option.ts'
import { withStore } from '../with-store.ts'

export const run = (context: CliContext): Promise<number> =>
  withStore(context, async ({ store, clock, gateway }) => {
    const { code, expiresAtMs } = await newPairingCode(store, await gateway(), clock, roleOption(context))
    if (context.json) context.out.json({ code, expires_at: new Date(expiresAtMs).toISOString() })
    else context.out.print(code)
    return 0
  })
