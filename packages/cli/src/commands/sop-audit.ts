/** `sluice sop audit`: shows the audit log and verifies it. Exits with 1 if a record was changed, removed or inserted. */

import { oneLine } from '@sluice/sdk'
import type { ShownAudit } from '@sluice/sop/shown'
import type { Api } from '../api/api.ts'
import { deviceNames } from '../api/device-names.ts'
import { withApi } from '../api/open-api.ts'
import { type Page, readPages } from '../api/pages.ts'
import type { CliContext } from '../context.ts'
import { LIMIT_MAX, PAGE_MAX, textOption, wholeNumber } from '../option-values.ts'
import { ERROR_CHARS_MAX, NAME_CHARS_MAX } from '../print-details.ts'

const LIMIT = 50

/** The answer of `GET /api/sops/audit/verify`. */
interface Verification {
  readonly ok: boolean
  readonly records: number
  readonly head: string
  readonly broken: { readonly number: number; readonly why: string } | null
}

export async function run(context: CliContext): Promise<number> {
  const { out, json, options } = context
  const limit = typeof options.limit === 'string' ? wholeNumber('--limit', options.limit, 0, LIMIT_MAX) : LIMIT
  const [runId, sop] = [textOption(context, 'run'), textOption(context, 'sop')]
  return withApi(context, async (api) => {
    const { ok, records, head, broken } = await api.get<Verification>('/api/sops/audit/verify')
    // Without a filter, the newest records are shown.
    const after = runId === undefined && sop === undefined ? Math.max(0, records - limit) : 0
    const { items: rows, next } = await readRecords(api, limit, { run: runId, sop, after })
    if (next !== null || (after > 0 && limit > 0)) out.warn(`there are more: add --limit ${Math.min(Math.max(limit, 1) * 10, LIMIT_MAX)}`)
    if (json) out.json({ ok, records, head, broken, rows })
    else {
      if (rows.length > 0) {
        const named = await deviceNames(
          api,
          rows.flatMap(({ by, reason }) => [by, reason]),
        )
        const shown = rows.map((row) => tableRow({ ...row, by: named(row.by), reason: row.reason && named(row.reason) }))
        out.table(['record', 'at', 'kind', 'procedure', 'run', 'step', 'by', 'reason'], shown)
      }
      if (broken) out.warn(`${out.style('red', 'the log was tampered with')}: record ${broken.number}: ${broken.why}`)
      else out.print(`${records} records, none changed, missing or inserted; head ${head}`)
    }
    return ok ? 0 : 1
  })
}

async function readRecords(
  api: Api,
  limit: number,
  { after: first, ...filter }: { readonly run: string | undefined; readonly sop: string | undefined; readonly after: number },
): Promise<Page<ShownAudit, number>> {
  if (limit === 0) return { items: [], next: null }
  return readPages(limit, PAGE_MAX, async (size, after = first) => {
    const page = await api.get<{ records: ShownAudit[]; next: number | null }>('/api/sops/audit', { ...filter, limit: size, after })
    return { items: page.records, next: page.next }
  })
}

const tableRow = ({ number, at, kind, sop, run_id, step, by, reason, detail }: ShownAudit): string[] => [
  String(number),
  at,
  kind,
  oneLine(sop, NAME_CHARS_MAX),
  run_id ?? '',
  step === null ? '' : String(step),
  oneLine(by, NAME_CHARS_MAX),
  oneLine(reason ?? (kind === 'device_write' ? deviceWrite(detail) : ''), ERROR_CHARS_MAX),
]

/** Formats a write to a device, such as `board_a0 gpio_write pins=[12] pin=12 value=1`. */
function deviceWrite({ device, tool, client: _client, turn: _turn, ...values }: ShownAudit['detail']): string {
  const parts = Object.entries(values).map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  return [device, tool, ...parts].join(' ')
}
