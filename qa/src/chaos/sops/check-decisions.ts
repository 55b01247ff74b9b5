/** Every approval is decided once, by somebody who said so; nothing is approved by time, and what is said of it is said once. */
import type { Approval, AuditRow, OutboxRow } from '@sluice/sdk'
import { countsOf } from '../counts-of.ts'
import type { Violation } from '../history.ts'
import { type Attempt, gateName, type SopsHistory, type SopsView } from './history.ts'

const DECISIONS: readonly string[] = ['approved', 'rejected', 'expired']
const ENDED: readonly string[] = ['sent', 'ambiguous']

type Tell = (rule: string, detail: string) => void

export function checkDecisions({ seen, delivered }: SopsHistory, { approvals, audit, outbox }: SopsView): Violation[] {
  const found: Violation[] = []
  const tell: Tell = (rule, detail) => void found.push({ rule, detail })
  const byName = new Map(approvals.map((approval) => [gateName(approval.runId, approval.stepId), approval]))
  const attempts = seen.flatMap((event) => (event.type === 'deciding' ? [event] : []))
  const byTag = new Map(attempts.map((attempt) => [attempt.tag, attempt]))
  const tried = Map.groupBy(attempts, ({ run, step }) => gateName(run, step))
  const wins = new Map<string, string>()

  for (const event of seen) {
    if (event.type === 'opened' && !byName.has(gateName(event.run, event.step))) tell('kept', `the approval of ${event.run} is gone`)
    if (event.type !== 'won' && event.type !== 'lost') continue
    const attempt = byTag.get(event.tag)
    const name = attempt ? gateName(attempt.run, attempt.step) : event.tag
    const approval = byName.get(name)
    if (!attempt || !approval) tell('kept', `${event.tag} decided ${name}, which is gone`)
    else if (event.type === 'lost' && event.state !== approval.state)
      tell('decided once', `${name} was ${event.state}, and is ${approval.state}`)
    else if (event.type === 'won') {
      const before = wins.get(name)
      if (before !== undefined) tell('decided once', `${name} was decided by ${before} and by ${event.tag}`)
      wins.set(name, event.tag)
      if (!isBy(approval, attempt)) tell('decided once', `${name} was decided by ${event.tag}, and is ${approval.state} by ${approval.by}`)
    }
  }
  for (const [name, approval] of byName) checkOne(name, approval, tried.get(name) ?? [], tell)
  checkRecords(audit, byName, tell)
  for (const approval of approvals) checkSaid(approval, outbox, delivered, tell)
  for (const row of outbox) if (!ENDED.includes(row.state)) tell('said', `the message ${row.number} is ${row.state}: ${row.error}`)
  return found
}

/** The attempt is what the books call the decision. */
const isBy = ({ state, by, feedback }: Approval, { approve, by: who, tag }: Attempt): boolean =>
  state === (approve ? 'approved' : 'rejected') && by?.startsWith(who) === true && (feedback === null || feedback === tag)

function checkOne(name: string, approval: Approval, attempts: readonly Attempt[], tell: Tell): void {
  const { state, by, decidedAtMs, settledAtMs, expiresAtMs } = approval
  const how = `${name} is ${state} by ${by}`
  if (state === 'pending' || decidedAtMs === null) {
    tell('decided', how)
    return
  }
  if (settledAtMs === null) tell('taken', `${how}, and nobody has taken it`)
  if (state === 'expired') {
    if (by !== 'timeout' || expiresAtMs === null || expiresAtMs > decidedAtMs) tell('expired', how)
  } else if (state === 'cancelled') {
    if (by !== 'system') tell('cancelled', how)
  } else if (!attempts.some((attempt) => attempt.isEntitled && isBy(approval, attempt))) tell('by people', `${how}, who never said so`)
}

/** What the audit log says people decided is what they decided, and it says so once. */
function checkRecords(audit: readonly AuditRow[], byName: ReadonlyMap<string, Approval>, tell: Tell): void {
  const decisions = audit.filter(({ kind }) => DECISIONS.includes(kind))
  const nameOf = ({ run, detail }: AuditRow): string => gateName(run ?? '', String(detail.gate))
  for (const [name, times] of countsOf(decisions.map(nameOf))) if (times > 1) tell('taken once', `${name} is decided ${times} times`)
  for (const row of decisions) {
    const approval = byName.get(nameOf(row))
    if (approval?.state !== row.kind || approval.by !== row.by)
      tell('taken', `${nameOf(row)} is on record as ${row.kind} by ${row.by}, and is ${approval?.state} by ${approval?.by}`)
    if (approval?.settledAtMs != null && approval.settledAtMs < row.atMs)
      tell('taken first', `${nameOf(row)} was confirmed before it was taken`)
  }
}

/** Where the decision had words of its own, the messages that confirm it are known by them. */
function checkSaid(
  { state, by, feedback, prompts, settledAtMs }: Approval,
  outbox: readonly OutboxRow[],
  delivered: readonly string[],
  tell: Tell,
): void {
  if (feedback === null || settledAtMs === null || prompts.length === 0) return
  const text = `${state === 'approved' ? 'Approved' : 'Rejected'} by ${by}: ${feedback}`
  const rows = outbox.filter((row) => row.text === text).length
  const edits = outbox.filter((row) => row.text?.endsWith(`\n\n${text}`)).length
  const times = delivered.filter((said) => said === text).length
  if (rows !== 1 || edits > 1) tell('said once', `"${text}" is ${rows} messages and ${edits} edits`)
  if (times > 1) tell('said once', `"${text}" was said ${times} times`)
}
