/** `sluice pair token`: a new bearer token and nothing else on standard output, whether or not the daemon runs. */

import { newToken } from '@sluice/runtime'
import type { CliContext } from '../context.ts'
import { roleOption } from '../role-option.ts'
import { wholeNumber } from '../whole-number.ts'
import { withStore } from '../with-store.ts'

const DAY_MS = 86_400_000
/** A hundred years: what is later than any date can be could not be shown. */
const DAYS_MAX = 36_500

export const run = (context: CliContext): Promise<number> =>
  withStore(context, async ({ store, clock }) => {
    const { name, 'expires-days': days } = context.options
    const expiresAtMs = typeof days === 'string' ? clock.nowMs() + wholeNumber('--expires-days', days, 1, DAYS_MAX) * DAY_MS : null
    const role = roleOption(context)
    const { token, device } = await newToken(
      store,
      { name: typeof name === 'string' && name ? name : 'command line', ...(role && { role }), expiresAtMs },
      clock,
    )
    if (context.json) context.out.json({ token, device_id: device })
    else context.out.print(token)
    return 0
  })
