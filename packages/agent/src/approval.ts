/** Asks a person whether a tool call may run. What a model writes is shown to them, and is never an answer. */
import type { Logger, Tool } from '@sluice/sdk'
import type { CallScope } from './call-scope.ts'
import type { Scrub } from './scrub.ts'
import { shorten } from './shorten.ts'
import { deniedText } from './tool-policy.ts'
import type { ApprovalRequest, Approver } from './turn.ts'

export interface ApprovalDeps {
  readonly log: Logger
  readonly scrub: Scrub
  /** Asks where the turn's own caller cannot. */
  readonly approve: Approver | undefined
}

/** Who agreed, or why the call does not run. */
export type Answer = { readonly by: string } | { readonly refusal: string }

/** A longer value shows its beginning and its end, and how much is between them. */
const SUMMARY_VALUE_CHARS = 2000
const SUMMARY_VALUES_MAX = 20

/** Rejects only with the end of the turn. */
export async function askPerson(
  deps: ApprovalDeps,
  scope: CallScope,
  { callId, tool, input }: { readonly callId: string; readonly tool: Tool; readonly input: unknown },
): Promise<Answer> {
  const { policy, turn, session, inbox, cancellation } = scope
  const approve = scope.approve ?? deps.approve
  if (!approve) return { refusal: deniedText(policy, tool, false) }
  const request: ApprovalRequest = { callId, tool: tool.name, summary: summarise(input, deps.scrub), turn, session, inbox }
  try {
    const answer = await scope.whileAsking(() => cancellation.race(approve(request, cancellation.signal)))
    if (answer === undefined) return { refusal: deniedText(policy, tool, false) }
    return answer === false || !answer.by ? { refusal: deniedText(policy, tool, true) } : answer
  } catch (error) {
    cancellation.throwIfCancelled()
    deps.log.error('approval failed', { tool: tool.name, turn, error })
    return { refusal: deniedText(policy, tool, false) }
  }
}

/** A line for each value of the input; what is not shown is told of. */
function summarise(input: unknown, scrub: Scrub): string {
  const values = typeof input === 'object' && input !== null ? Object.entries(input) : [['input', input] as const]
  const left = values.length - SUMMARY_VALUES_MAX
  const lines = values
    .slice(0, SUMMARY_VALUES_MAX)
    .map(([name, value]) => scrub(`${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`))
    // Blanks hide nothing: what is far to the right or below is as much a part of the call.
    .map((line) => shorten(visible(line.replace(/\s+/g, ' ')), SUMMARY_VALUE_CHARS).toWellFormed())
  return [...lines, ...(left > 0 ? [`(and ${left} values more, which are not shown)`] : [])].join('\n')
}

/** What turns a line around or cannot be seen is spelled out: a call runs as it is written, not as it looks. */
const visible = (line: string): string =>
  line.replace(/[\p{Cc}\p{Cf}]/gu, (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`)
