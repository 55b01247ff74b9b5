/** The audit record of an act outside of a procedure. */
import type { NewAudit } from '../store/sop-store.ts'

export const actionRecord = ({ kind, atMs, by, detail }: Pick<NewAudit, 'kind' | 'atMs' | 'by' | 'detail'>): NewAudit => ({
  kind,
  atMs,
  sop: '',
  run: null,
  step: null,
  by,
  reason: null,
  detail,
})
