/** `sluice pair revoke`: the device's token and its passkeys are refused from now on, and its streams end within a second. */
import { AppError } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { findByBeginning } from '../find-by-beginning.ts'
import { withStore } from '../with-store.ts'

export const run = (context: CliContext): Promise<number> =>
  withStore(context, async ({ store }) => {
    const [text = ''] = context.args
    const id = findByBeginning(text, await store.devices.list(), (device) => device.id, 'devices')?.id ?? text
    if (!(await store.devices.revoke(id, { keepPasskeys: context.options['keep-passkeys'] === true })))
      throw new AppError('not_found', `no device '${id}'; 'sluice pair list' lists them`)
    if (context.json) context.out.json({ revoked: id })
    else context.out.print(`revoked ${id}`)
    return 0
  })
