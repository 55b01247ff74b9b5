/** Procedure runs and their audit log in memory. Arguments and results are copied, so callers cannot change stored data. */
import {
  AppError,
  AUDIT_ROOT,
  type AuditRow,
  auditHash,
  judgeStart,
  type NewAudit,
  type OwnedSopStore,
  SOP_ENDED,
  SOP_RANKS,
  type SopDispatch,
  type SopLimits,
  type SopLoad,
  type SopRun,
  type SopStart,
  takenLimit,
} from '@sluice/sdk'

const copy = <Value>(value: Value): Value => (value === undefined ? value : JSON.parse(JSON.stringify(value)))
interface Kept {
  readonly run: SopRun
  /** The run as it was stored; `advance` compares it with the run that the caller read. */
  readonly json: string
}

const keep = (run: SopRun): Kept => ({ run: copy(run), json: JSON.stringify(run) })
const isUnfinished = ({ status }: SopRun): boolean => !SOP_ENDED.includes(status)
const isActive = (run: SopRun): boolean => isUnfinished(run) && run.status !== 'waiting'

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
    const { run, audit, limits } = start
    const judged = judgeStart(limits, loadOf(run.sop, limits, all(), atMs))
    if (judged.verdict === 'start') {
      append(audit)
      runs.set(run.id, keep(run))
      return { sop: run.sop, status: 'started', runId: run.id }
    }
    const { verdict, reason } = judged
    const held = start.held(reason)
    const isSame = ({ event: { source, topic } }: SopRun) => source === run.event.source && topic === run.event.topic
    const before =
      start.holdsOne && limits.waitingMax > 0 && verdict !== 'skip'
        ? all().find((other) => other.status === 'waiting' && other.sop === run.sop && isSame(other))
        : undefined
    if (before) {
      append([{ ...start.skipped('a newer event of this trigger took its place while it waited'), by: before.event.by, atMs }])
      runs.set(before.id, keep({ ...held.run, id: before.id }))
      return { sop: run.sop, status: 'waiting', runId: before.id, reason }
    }
    if (verdict === 'wait') {
      append(held.audit)
      runs.set(run.id, keep(held.run))
      return { sop: run.sop, status: 'waiting', runId: run.id, reason }
    }
    append([start.skipped(reason)])
    return { sop: run.sop, status: 'skipped', reason }
  }

  return {
    async start(starts, { atMs, key, repeats }) {
      const known = key === undefined ? undefined : answers.get(key)
      if (known) return known.dispatches
      const isFull = ({ run: { sop }, limits }: SopStart) => judgeStart(limits, loadOf(sop, limits, all(), atMs)).verdict === 'full'
      if (repeats && starts.length > 0 && starts.every(isFull))
        throw new AppError('unavailable', 'The largest number of runs waits already', { retryAfterSecs: 30 })
      const dispatches = starts.map((start) => startOne(start, atMs))
      if (key !== undefined) answers.set(key, { atMs, dispatches })
      return dispatches
    },
    async advance(before, after, audit) {
      if (runs.get(before.id)?.json !== JSON.stringify(before) || !isUnfinished(before)) return false
      runs.set(before.id, keep(after))
      append(audit)
      return []
    },
    async waiting() {
      const held = all().filter(({ status }) => status === 'waiting')
      return held
        .toSorted((a, b) => SOP_RANKS[b.priority] - SOP_RANKS[a.priority])
        .map(({ id, sop, startedAtMs: sinceMs }) => ({ id, sop, sinceMs }))
    },
    async begin({ before, after, audit, limits }, atMs) {
      const load = loadOf(before.sop, limits, all(), atMs)
      if (takenLimit(limits, load) !== undefined) return { inMs: null }
      if (load.coolsMs > 0) return { inMs: load.coolsMs }
      if (runs.get(before.id)?.json !== JSON.stringify(before)) return 'changed'
      runs.set(before.id, keep(after))
      append(audit)
      return 'begun'
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
        (active === undefined || isUnfinished(run) === active) &&
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
      const ended = all().filter((run) => !isUnfinished(run))
      const dropped = finishedMax === 0 ? [] : ended.slice(0, Math.max(0, ended.length - finishedMax))
      for (const { id } of dropped) runs.delete(id)
      for (const [key, { atMs }] of answers) if (atMs < keysBeforeMs) answers.delete(key)
      return dropped.length
    },
  }
}

function loadOf(sop: string, { cooldownMs }: SopLimits, runs: readonly SopRun[], atMs: number): SopLoad {
  const own = runs.filter((run) => run.sop === sop)
  const counts = new Map(
    Map.groupBy(own.filter(isUnfinished), ({ status }) => status)
      .entries()
      .map(([status, of]) => [status, of.length]),
  )
  const ends = own.flatMap(({ endedAtMs, status }) => (endedAtMs === null || status === 'expired' ? [] : [endedAtMs]))
  const coolsMs = cooldownMs > 0 ? Math.max(...ends, Number.NEGATIVE_INFINITY) + cooldownMs - atMs : 0
  return { counts, total: runs.filter(({ status }) => status === 'running').length, coolsMs }
}
