/** `sluice pair`: pairing codes, tokens, and the list of paired devices. */
import type { DevicesPage, NewDeviceAnswer, PairingCode } from '@sluice/http/answers'
import { AppError } from '@sluice/sdk'
import { type Api, apiPath } from '../api/api.ts'
import { withApi } from '../api/open-api.ts'
import type { CliContext } from '../context.ts'
import { findByPrefix } from '../find-by-prefix.ts'
import { limitOfAll, roleOption, textOption, wholeNumber } from '../option-values.ts'

/** A hundred years. A time beyond the largest date could not be formatted. */
const EXPIRY_DAYS_MAX = 36_500

/** `sluice pair new`: prints a one-time code for a new device. */
export function newCode(context: CliContext): Promise<number> {
  const role = roleOption(context)
  const initiate = async (api: Api): Promise<number> => {
    const { pairing_code: code, expires_at } = await api.post<PairingCode>('/api/pairing/initiate', undefined, { role })
    if (context.json) context.out.json({ code, expires_at })
    else context.out.print(code)
    return 0
  }
  return withApi(context, initiate, { config: true })
}

/** `sluice pair token`: prints a new bearer token and nothing else, whether or not the daemon is running. */
export function token(context: CliContext): Promise<number> {
  const days = textOption(context, 'expires-days')
  const device = {
    name: textOption(context, 'name') ?? 'command line',
    role: roleOption(context),
    expires_days: days === undefined ? undefined : wholeNumber('--expires-days', days, 1, EXPIRY_DAYS_MAX),
  }
  return withApi(context, async (api) => {
    const created = await api.post<NewDeviceAnswer>('/api/devices', device)
    if (context.json) context.out.json({ token: created.token, device_id: created.device_id })
    else context.out.print(created.token)
    return 0
  })
}

/** `sluice pair list`: prints the paired devices. */
export function list(context: CliContext): Promise<number> {
  const { out, json } = context
  const limit = limitOfAll(context)
  return withApi(context, async (api) => {
    const { devices } = await api.get<DevicesPage>('/api/devices')
    const rows = devices
      .slice(0, limit)
      .map(({ ip_address, expires_at, ...device }) => ({ ...device, last_address: ip_address, expires_at }))
    if (json) out.json(rows)
    else if (rows.length === 0) out.hint("no device is paired; 'sluice pair new' prints a pairing code")
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
    if (devices.length > rows.length) out.warn(`there are ${devices.length - rows.length} more: raise --limit`)
    return 0
  })
}

/** `sluice pair revoke`: from now on the device's token and passkeys are refused, and its open streams end. */
export const revoke = (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    const [text = ''] = context.args
    const { devices } = await api.get<DevicesPage>('/api/devices')
    const id = findByPrefix(text, devices, (device) => device.id, 'devices')?.id
    if (id === undefined) throw new AppError('not_found', `no device '${text}'; 'sluice pair list' lists them`)
    await api.delete(apiPath('/api/devices', id), { keep_passkeys: context.options['keep-passkeys'] === true })
    if (context.json) context.out.json({ revoked: id })
    else context.out.print(`revoked ${id}`)
    return 0
  })
