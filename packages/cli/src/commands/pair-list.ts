/** `sluice pair list`: the paired devices. */
import type { CliContext } from '../context.ts'
import { withStore } from '../with-store.ts'

export const run = (context: CliContext): Promise<number> =>
  withStore(context, async ({ store }) => {
    const { out, json } = context
    const devices = await store.devices.list()
    const rows = devices.map((device) => ({
      id: device.id,
      name: device.name,
      role: device.role,
      paired_at: time(device.createdAtMs),
      last_seen: device.lastSeenAtMs === null ? null : time(device.lastSeenAtMs),
      last_address: device.lastAddress,
      expires_at: device.expiresAtMs === null ? null : time(device.expiresAtMs),
    }))
    if (json) out.json(rows)
    else if (rows.length === 0) out.print("no device is paired; 'sluice pair new' prints a code for one")
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

const time = (ms: number): string => new Date(ms).toISOString()
