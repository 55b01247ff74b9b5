/** `sluice pair token`: a new bearer token and nothing else on standard output, whether or not the daemon runs. */

import { newToken } from '@sluice/gateway/pairing'
import { AppError } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { withStore } from '../with-store.ts'

const DAY_MS = 86_400_000

export const run = (context: CliContext): Promise<number> =>
  withStore(context, async ({ store, clock }) => {
    const { name, 'expires-days': days } = context.options
    const expiresAtMs = days === undefined ? null : clock.nowMs() + wholeDays(days) * DAY_MS
    const { token, device } = await newToken(store, { name: typeof name === 'string' && name ? name : 'command line', expiresAtMs }, clock)
    if (context.json) context.out.json({ token, device_id: device })
    else context.out.print(token)
    return 0
  })

function wholeDays(text: string | boolean): number {
  const days = Number(text)
  if (!Number.isInteger(days) || days < 1)
    throw new AppError('invalid_request', `--expires-days wants a whole number of days, not '${text}'`)
  return days
}
