/** `sluice sop audit`: the audit log, and whether anything in it was changed, taken out or put in; 1 if so. */

import type { AuditRow } from '@sluice/sdk'
import { oneLine } from '@sluice/sdk'
import { shownAudit } from '@sluice/sop/shown'
import type { CliContext } from '../context.ts'
import { time } from '../deliveries/show.ts'
import { ERROR_CHARS_MAX, NAME_CHARS_MAX } from '../deliveries/widths.ts'
import { wholeNumber } from '../whole-number.ts'
import { withStore } from '../with-store.ts'

const LIMIT = 50
const LIMIT_MAX = 100_000

export const run = (context: CliContext): Promise<number> =>
  withStore(context, async ({ store }) => {
    const { out, json, options } = context
    const { sops } = store
    const { records, head, broken } = await sops.verify()
    const limit = typeof options.limit === 'string' ? wholeNumber('--limit', options.limit, 0, LIMIT_MAX) : LIMIT
    const narrow = {
      ...(typeof options.run === 'string' && { run: options.run }),
      ...(typeof options.sop === 'string' && { sop: options.sop }),
    }
    // Without a run or a procedure named, the newest are what somebody wants to see.
    const after = Object.keys(narrow).length === 0 ? Math.max(0, records - limit) : 0
    const rows = limit === 0 ? [] : await sops.audit({ limit, after, ...narrow })
    if (limit > 0 && rows.length === limit && rows.length < records)
      out.warn(`there may be more: add --limit ${Math.min(limit * 10, LIMIT_MAX)}`)
    if (json) out.json({ ok: broken === null, records, head, broken, rows: rows.map(shownAudit) })
    else {
      if (rows.length > 0) out.table(['record', 'at', 'kind', 'procedure', 'run', 'step', 'by', 'reason'], rows.map(cells))
      if (broken) out.warn(`${out.style('red', 'the log was tampered with')}: record ${broken.number}: ${broken.why}`)
      else out.print(`${records} records, none changed, missing or put in; head ${head}`)
    }
    return broken ? 1 : 0
  })

const cells = ({ number, atMs, kind, sop, run, step, by, reason, detail }: AuditRow): string[] => [
  String(number),
  time(atMs) ?? '',
  kind,
  oneLine(sop, NAME_CHARS_MAX),
  run ?? '',
  step === null ? '' : String(step),
  oneLine(by, NAME_CHARS_MAX),
  oneLine(reason ?? (kind === 'device_write' ? written(detail) : ''), ERROR_CHARS_MAX),
]

/** What went to a device: `board_a0 gpio_write pins=[12] pin=12 value=1`. */
function written({ device, tool, client: _client, turn: _turn, ...what }: AuditRow['detail']): string {
  const values = Object.entries(what).map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  return [device, tool, ...values].join(' ')
}
