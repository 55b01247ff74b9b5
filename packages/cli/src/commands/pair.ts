/** `sluice pair`: pairing codes, tokens, and the list of paired devices. */
import { gatewaySection, readConfig } from '@sluice/config'
import { newPairingCode, newToken } from '@sluice/runtime'
import { AppError } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { findByPrefix } from '../find-by-prefix.ts'
import { roleOption, textOption, wholeNumber } from '../option-values.ts'
import { formatTime } from '../print-details.ts'
import { withStore } from '../with-store.ts'

const DAY_MS = 86_400_000
/** A hundred years. A time beyond the largest date could not be formatted. */
const EXPIRY_DAYS_MAX = 36_500

/** `sluice pair new`: prints a one-time code for a new device. */
export const newCode = (context: CliContext): Promise<number> =>
  withStore(context, async (store, clock) => {
    const gateway = (await readConfig(context)).core(gatewaySection)
    const { code, expiresAtMs } = await newPairingCode(store, gateway, clock, roleOption(context))
    if (context.json) context.out.json({ code, expires_at: formatTime(expiresAtMs) })
    else context.out.print(code)
    return 0
  })

/** `sluice pair token`: prints a new bearer token and nothing else, whether or not the daemon is running. */
export const token = (context: CliContext): Promise<number> =>
  withStore(context, async (store, clock) => {
    const days = context.options['expires-days']
    const expiresAtMs = typeof days === 'string' ? clock.nowMs() + wholeNumber('--expires-days', days, 1, EXPIRY_DAYS_MAX) * DAY_MS : null
    const role = roleOption(context)
    const created = await newToken(
      store,
      { name: textOption(context, 'name') ?? 'command line', ...(role && { role }), expiresAtMs },
      clock,
    )
    if (context.json) context.out.json({ token: created.token, device_id: created.device })
    else context.out.print(created.token)
    return 0
  })

/** `sluice pair list`: prints the paired devices. */
export const list = (context: CliContext): Promise<number> =>
  withStore(context, async (store) => {
    const { out, json } = context
    const devices = await store.devices.list()
    const rows = devices.map((device) => ({
      id: device.id,
      name: device.name,
      role: device.role,
      paired_at: new Date(device.createdAtMs).toISOString(),
      last_seen: formatTime(device.lastSeenAtMs),
      last_address: device.lastAddress,
      expires_at: formatTime(device.expiresAtMs),
    }))
    if (json) out.json(rows)
    else if (rows.length === 0) out.print("no device is paired; 'sluice pair new' prints a pairing code")
    else
      out.table(
        ['id', 'name', 'role', 'paired', 'last seen', 'from', 'expires'],
        rows.map((row) => [
          row.id,
          row.name,
          row.role,
          row.paired_at,
          row.last_seen ?? 'never',
          row.last_address ?? '-',
          row.expires_at ?? 'never',
        ]),
      )
    return 0
  })

/** `sluice pair revoke`: from now on the device's token and passkeys are refused; its open streams end within a second. */
export const revoke = (context: CliContext): Promise<number> =>
  withStore(context, async ({ devices }) => {
    const [text = ''] = context.args
    const id = findByPrefix(text, await devices.list(), (device) => device.id, 'devices')?.id ?? text
    if (!(await devices.revoke(id, { keepPasskeys: context.options['keep-passkeys'] === true })))
      throw new AppError('not_found', `no device '${id}'; 'sluice pair list' lists them`)
    if (context.json) context.out.json({ revoked: id })
    else context.out.print(`revoked ${id}`)
    return 0
  })
