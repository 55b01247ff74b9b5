/** What the end of a turn means for the step it worked on. */
import type { SopRun, SopStep } from '@sluice/sdk'
import type { TurnOutcome } from './engine-deps.ts'
import type { SopInput } from './machine.ts'
import { brief } from './record.ts'

/** Failures that pass by themselves. */
export const PASSING: ReadonlySet<string> = new Set(['upstream', 'upstream_timeout', 'unavailable', 'rate_limited'])

/** Milliseconds to wait before the second attempt, the third, and so on; there is none after the last. */
export const RETRY_WAITS_MS: readonly number[] = [1000, 5000, 20_000, 60_000]

const OUTPUT_CHARS_MAX = 16_384

type Attempt = NonNullable<SopRun['attempt']>

/** Undefined while the turn has not ended. `nextTurnId` names the turn of another attempt, if there is to be one. */
export function turnVerdict(
  run: SopRun,
  attempt: Attempt & { readonly turnId: string },
  turn: TurnOutcome,
  nextTurnId: () => string,
): SopInput | undefined {
  const { turnId } = attempt
  const about = { step: run.step, turnId }
  switch (turn.status) {
    case 'queued':
    case 'running':
      return undefined
    case 'done': {
      const { status, output } = run.report ?? { status: 'completed', output: turn.response ?? '' }
      return { type: 'attemptEnded', ...about, status, output: brief(output, OUTPUT_CHARS_MAX) }
    }
    case 'aborted':
      return { type: 'attemptEnded', ...about, status: 'failed', output: 'Its turn was aborted' }
    case 'failed': {
      const reason = turn.error ? `${turn.error.message} (${turn.error.code})` : 'Its turn failed'
      if (!PASSING.has(turn.error?.code ?? '')) return { type: 'attemptEnded', ...about, status: 'failed', output: reason }
      if (mayHaveActed(run.steps[run.step - 1], turn)) return { type: 'cut', ...about, reason }
      if (attempt.number > RETRY_WAITS_MS.length) {
        return { type: 'attemptEnded', ...about, status: 'failed', output: `${reason}, in each of ${attempt.number} attempts` }
      }
      return { type: 'retry', turnId, nextTurnId: nextTurnId(), reason }
    }
  }
}

/** No tool was called before a model answered. A turn that was started twice may have acted in the life before, also while it waited. */
const mayHaveActed = (step: SopStep | undefined, { model, starts }: TurnOutcome): boolean =>
  step?.tools?.length !== 0 && (model !== null || starts > 1)
