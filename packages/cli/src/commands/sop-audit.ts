/** `sluice sop audit`: shows the audit log and verifies it. Exits with 1 if a record was changed, removed or inserted. */

import { type AuditRow, oneLine } from '@sluice/sdk'
import { shownAudit } from '@sluice/sop/shown'
import type { CliContext } from '../context.ts'
import { wholeNumber } from '../option-values.ts'
import { ERROR_CHARS_MAX, formatTime, NAME_CHARS_MAX } from '../print-details.ts'
import { withStore } from '../with-store.ts'

const LIMIT = 50
const LIMIT_MAX = 100_000

export const run = (context: CliContext): Promise<number> =>
  withStore(context, async ({ sops }) => {
    const { out, json, options } = context
    const { records, head, broken } = await sops.verify()
    const limit = typeof options.limit === 'string' ? wholeNumber('--limit', options.limit, 0, LIMIT_MAX) : LIMIT
    const filter = {
      ...(typeof options.run === 'string' && { run: options.run }),
      ...(typeof options.sop === 'string' && { sop: options.sop }),
    }
    // Without a filter, the newest records are shown.
    const after = Object.keys(filter).length === 0 ? Math.max(0, records - limit) : 0
    const rows = limit === 0 ? [] : await sops.audit({ limit, after, ...filter })
    if (limit > 0 && rows.length === limit && rows.length < records)
      out.warn(`there may be more: add --limit ${Math.min(limit * 10, LIMIT_MAX)}`)
    if (json) out.json({ ok: broken === null, records, head, broken, rows: rows.map(shownAudit) })
    else {
      if (rows.length > 0) out.table(['record', 'at', 'kind', 'procedure', 'run', 'step', 'by', 'reason'], rows.map(tableRow))
      if (broken) out.warn(`${out.style('red', 'the log was tampered with')}: record ${broken.number}: ${broken.why}`)
      else out.print(`${records} records, none changed, missing or inserted; head ${head}`)
    }
    return broken ? 1 : 0
  })

const tableRow = ({ number, atMs, kind, sop, run: runId, step, by, reason, detail }: AuditRow): string[] => [
  String(number),
  formatTime(atMs) ?? '',
  kind,
  oneLine(sop, NAME_CHARS_MAX),
  runId ?? '',
  step === null ? '' : String(step),
  oneLine(by, NAME_CHARS_MAX),
  oneLine(reason ?? (kind === 'device_write' ? deviceWrite(detail) : ''), ERROR_CHARS_MAX),
]

/** Formats a write to a device, such as `board_a0 gpio_write pins=[12] pin=12 value=1`. */
function deviceWrite({ device, tool, client: _client, turn: _turn, ...values }: AuditRow['detail']): string {
  const parts = Object.entries(values).map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  return [device, tool, ...parts].join(' ')
}
