/** Procedure runs and their audit log in memory. Arguments and results are copied, so callers cannot change stored data. */
import {
  AUDIT_ROOT,
  type AuditRow,
  auditHash,
  type NewAudit,
  type OwnedSopStore,
  SOP_ENDED,
  type SopDispatch,
  type SopRun,
  type SopStart,
} from '@sluice/sdk'

const copy = <Value>(value: Value): Value => structuredClone(value)
interface Kept {
  readonly run: SopRun
  /** The run as it was stored; `advance` compares it with the run that the caller read. */
  readonly json: string
}

const keep = (run: SopRun): Kept => ({ run: copy(run), json: JSON.stringify(run) })
const isActive = ({ status }: SopRun): boolean => !SOP_ENDED.includes(status)

/** Creates an empty store, which enforces the same limits as a durable one, as the holder of all shards uses it. */
export function memorySopStore(): OwnedSopStore {
  const runs = new Map<string, Kept>()
  const answers = new Map<string, { readonly atMs: number; readonly dispatches: readonly SopDispatch[] }>()
  const log: AuditRow[] = []

  const all = (): SopRun[] => [...runs.values()].map(({ run }) => run)
  const append = (records: readonly NewAudit[]) => {
    for (const record of records) {
      const row = { ...copy(record), number: log.length + 1, previous: log.at(-1)?.hash ?? AUDIT_ROOT }
      log.push({ ...row, hash: auditHash(row, JSON.stringify(row.detail)) })
    }
  }

  const startOne = (start: SopStart, atMs: number): SopDispatch => {
    const { run, audit } = start
    const reason = heldBack(start, all(), atMs)
    append(reason === undefined ? audit : [start.skipped(reason)])
    if (reason !== undefined) return { sop: run.sop, status: 'skipped', reason }
    runs.set(run.id, keep(run))
    return { sop: run.sop, status: 'started', runId: run.id }
  }

  return {
    async start(starts, { atMs, key }) {
      const known = key === undefined ? undefined : answers.get(key)
      if (known) return known.dispatches
      const dispatches = starts.map((start) => startOne(start, atMs))
      if (key !== undefined) answers.set(key, { atMs, dispatches })
      return dispatches
    },
    async advance(before, after, audit) {
      if (runs.get(before.id)?.json !== JSON.stringify(before) || !isActive(before)) return false
      runs.set(before.id, keep(after))
      append(audit)
      return true
    },
    async record(audit) {
      append(audit)
    },
    async get(runId) {
      return copy(runs.get(runId)?.run)
    },
    async runs({ limit, sop, active, status, before, starter }) {
      const older = all()
      if (before !== undefined)
        older.length = Math.max(
          0,
          older.findIndex(({ id }) => id === before),
        )
      const wanted = (run: SopRun) =>
        (sop === undefined || run.sop === sop) &&
        (active === undefined || isActive(run) === active) &&
        (status === undefined || run.status === status) &&
        (starter === undefined || run.event.starter === starter)
      return copy(older.reverse().filter(wanted).slice(0, limit))
    },
    async unfinished({ after, limit }) {
      const listed = all()
      const first = after === null ? 0 : listed.findIndex(({ id }) => id === after) + 1
      return copy(listed.slice(first).filter(isActive).slice(0, limit))
    },
    async activeCounts() {
      const counts = new Map<string, number>()
      for (const run of all()) if (isActive(run)) counts.set(run.sop, (counts.get(run.sop) ?? 0) + 1)
      return counts
    },
    async audit({ limit, after = 0, run, sop }) {
      const wanted = (row: AuditRow) => (run === undefined || row.run === run) && (sop === undefined || row.sop === sop)
      return copy(log.slice(after).filter(wanted).slice(0, limit))
    },
    async verify() {
      return { records: log.length, head: log.at(-1)?.hash ?? AUDIT_ROOT, broken: null }
    },
    async prune({ finishedMax, keysBeforeMs }) {
      const ended = all().filter((run) => !isActive(run))
      const dropped = finishedMax === 0 ? [] : ended.slice(0, Math.max(0, ended.length - finishedMax))
      for (const { id } of dropped) runs.delete(id)
      for (const [key, { atMs }] of answers) if (atMs < keysBeforeMs) answers.delete(key)
      return dropped.length
    },
  }
}

/** Returns the limit that forbids the start, or `undefined` if it is allowed. */
function heldBack({ run, limits }: SopStart, runs: readonly SopRun[], atMs: number): string | undefined {
  const active = runs.filter(isActive)
  if (active.filter(({ sop }) => sop === run.sop).length >= limits.concurrentMax) return `max_concurrent = ${limits.concurrentMax}`
  if (active.length >= limits.totalMax) return `max_concurrent_total = ${limits.totalMax}`
  const lastEndMs = Math.max(...runs.filter(({ sop }) => sop === run.sop).map(({ endedAtMs }) => endedAtMs ?? Number.NEGATIVE_INFINITY))
  return atMs - lastEndMs < limits.cooldownMs ? 'cooling down' : undefined
}
