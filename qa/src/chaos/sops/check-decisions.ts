/** Checks that every approval is decided once by an entitled person, never approved by a time-out, and confirmed once. */
import type { Approval, AuditRow, OutboxRow } from '@sluice/sdk'
import { countsOf, type Report, reporter, type Violation } from '../history.ts'
import { type Attempt, gateName, type Seen, type SopsHistory, type SopsView } from './history.ts'

const DECISIONS: readonly string[] = ['approved', 'rejected', 'expired']
const SENT: readonly string[] = ['sent', 'ambiguous']

export function checkDecisions({ seen, delivered }: SopsHistory, { approvals, audit, outbox }: SopsView): Violation[] {
  const { found, report } = reporter()
  const byName = new Map(approvals.map((approval) => [gateName(approval.runId, approval.stepId), approval]))
  const attempts = seen.flatMap((event) => (event.type === 'deciding' ? [event] : []))
  const attemptsByName = Map.groupBy(attempts, ({ run, step }) => gateName(run, step))

  checkAnswers(seen, byName, new Map(attempts.map((attempt) => [attempt.tag, attempt])), report)
  for (const [name, approval] of byName) checkApproval(name, approval, attemptsByName.get(name) ?? [], report)
  checkRecords(audit, byName, report)
  for (const approval of approvals) checkConfirmations(approval, outbox, delivered, report)
  for (const row of outbox) if (!SENT.includes(row.state)) report('sent', `the message ${row.number} is ${row.state}: ${row.error}`)
  return found
}

/** Compares the answers that deciders got with the approvals in the store. */
function checkAnswers(
  seen: readonly Seen[],
  approvals: ReadonlyMap<string, Approval>,
  attempts: ReadonlyMap<string, Attempt>,
  report: Report,
): void {
  const winners = new Map<string, string>()
  for (const event of seen) {
    if (event.type === 'opened' && !approvals.has(gateName(event.run, event.step)))
      report('kept', `the approval of ${event.run} is missing`)
    if (event.type !== 'won' && event.type !== 'lost') continue
    const { tag } = event
    const attempt = attempts.get(tag)
    const name = attempt ? gateName(attempt.run, attempt.step) : tag
    const approval = approvals.get(name)
    if (!attempt || !approval) report('kept', `the approval ${name} is missing, but ${tag} decided it`)
    else if (event.type === 'lost' && event.state !== approval.state)
      report('decided once', `${name} is ${approval.state}, but ${tag} was answered that it was ${event.state}`)
    else if (event.type === 'won') {
      const before = winners.get(name)
      if (before !== undefined) report('decided once', `two attempts decided ${name}: ${before} and ${tag}`)
      winners.set(name, tag)
      if (!isBy(approval, attempt))
        report('decided once', `${name} is ${approval.state} by ${approval.by}, but ${tag} was answered that it decided`)
    }
  }
}

/** Whether the store names this attempt as the decision. */
const isBy = ({ state, by, feedback }: Approval, { approve, by: person, tag }: Attempt): boolean =>
  state === (approve ? 'approved' : 'rejected') && by?.startsWith(person) === true && (feedback === null || feedback === tag)

function checkApproval(name: string, approval: Approval, attempts: readonly Attempt[], report: Report): void {
  const { state, by, decidedAtMs, acknowledgedAtMs, expiresAtMs } = approval
  const decision = `${name} is ${state} by ${by}`
  if (state === 'pending' || decidedAtMs === null) {
    report('decided', `${name} is ${state} at the end`)
    return
  }
  if (acknowledgedAtMs === null) report('acknowledged', `${decision}, but its gate did not acknowledge the decision`)
  if (state === 'expired') {
    if (by !== 'timeout' || expiresAtMs === null || expiresAtMs > decidedAtMs) report('expired', `${decision}, before its time`)
  } else if (state === 'cancelled') {
    if (by !== 'system') report('cancelled', decision)
  } else if (!attempts.some((attempt) => attempt.isEntitled && isBy(approval, attempt)))
    report('by people', `${decision}, but no entitled person decided so`)
}

/** The audit log records each decision once, as the approval has it. */
function checkRecords(audit: readonly AuditRow[], byName: ReadonlyMap<string, Approval>, report: Report): void {
  const decisions = audit.filter(({ kind }) => DECISIONS.includes(kind))
  const nameOf = ({ run, detail }: AuditRow): string => gateName(run ?? '', String(detail.gate))
  for (const [name, times] of countsOf(decisions.map(nameOf)))
    if (times > 1) report('recorded once', `the audit log has ${times} decisions of ${name}`)
  for (const row of decisions) {
    const approval = byName.get(nameOf(row))
    if (approval?.state !== row.kind || approval.by !== row.by)
      report(
        'recorded',
        `the audit log says that ${nameOf(row)} is ${row.kind} by ${row.by}, but it is ${approval?.state} by ${approval?.by}`,
      )
    if (approval?.acknowledgedAtMs != null && approval.acknowledgedAtMs < row.atMs)
      report('acknowledged first', `${nameOf(row)} was confirmed before its run had the decision`)
  }
}

/** Checks the messages that confirm a decision. They can be recognised if the decision has a feedback text of its own. */
function checkConfirmations(
  { state, by, feedback, prompts, acknowledgedAtMs }: Approval,
  outbox: readonly OutboxRow[],
  delivered: readonly string[],
  report: Report,
): void {
  if (feedback === null || acknowledgedAtMs === null || prompts.length === 0) return
  const text = `${state === 'approved' ? 'Approved' : 'Rejected'} by ${by}: ${feedback}`
  const rows = outbox.filter((row) => row.text === text).length
  const edits = outbox.filter((row) => row.text?.endsWith(`\n\n${text}`)).length
  const times = delivered.filter((other) => other === text).length
  if (rows !== 1 || edits > 1) report('confirmed once', `"${text}" has ${rows} messages and ${edits} edits in the outbox`)
  if (times > 1) report('confirmed once', `"${text}" was delivered ${times} times`)
}
