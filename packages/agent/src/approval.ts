/** Asks a person whether a tool call may run. What a model writes is shown to them, and is never an answer. */
import type { Logger, Tool } from '@sluice/sdk'
import type { Scrub } from './scrub.ts'
import { shorten } from './shorten.ts'
import { deniedText } from './tool-policy.ts'
import type { Approver } from './turn.ts'
import type { TurnScope } from './turn-scope.ts'

export interface ApprovalDeps {
  readonly log: Logger
  readonly scrub: Scrub
  /** Asks where the turn's own caller cannot. */
  readonly approve: Approver | undefined
}

/** A longer value shows its beginning and its end, and how much is between them. */
const SUMMARY_VALUE_CHARS = 2000
const SUMMARY_VALUES_MAX = 20

/** Resolves to undefined once a person agreed, otherwise to why the call does not run. Rejects only with the end of the turn. */
export async function askPerson(deps: ApprovalDeps, scope: TurnScope, tool: Tool, input: unknown): Promise<string | undefined> {
  const { turn, policy } = scope
  const approve = turn.approve ?? deps.approve
  if (!approve) return deniedText(policy, tool.name, false)
  const request = { tool: tool.name, summary: summarise(input, deps.scrub), turn: turn.id, session: turn.session }
  try {
    const isApproved = await turn.cancellation.race(approve(request, turn.cancellation.signal))
    return isApproved === true ? undefined : deniedText(policy, tool.name, true)
  } catch (error) {
    turn.cancellation.throwIfCancelled()
    deps.log.error('approval failed', { tool: tool.name, turn: turn.id, error })
    return deniedText(policy, tool.name, false)
  }
}

/** A line for each value of the input. */
function summarise(input: unknown, scrub: Scrub): string {
  const values = typeof input === 'object' && input !== null ? Object.entries(input) : [['input', input] as const]
  return (
    values
      .slice(0, SUMMARY_VALUES_MAX)
      .map(([name, value]) => scrub(`${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`))
      // Blanks hide nothing: what is far to the right or below is as much a part of the call.
      .map((line) => shorten(line.replace(/\s+/g, ' '), SUMMARY_VALUE_CHARS).toWellFormed())
      .join('\n')
  )
}
