/** A run in lines: for following it, and for showing it. */

import type { SopRun } from '@sluice/sdk'
import { oneLine } from '@sluice/sdk'
import { ERROR_CHARS_MAX, TEXT_CHARS_MAX } from '../deliveries/widths.ts'

/** What has happened so far; grows as the run goes on, and no line changes once it is there. */
export function progressLines(run: SopRun): string[] {
  const { steps, results, gate, status, step, endedAtMs, reason } = run
  const lines = results.map((result) => {
    const title = oneLine(steps[result.step - 1]?.title ?? '', TEXT_CHARS_MAX)
    return `step ${result.step}/${steps.length} ${title}: ${result.status}: ${oneLine(result.output, TEXT_CHARS_MAX)}`
  })
  if (gate) lines.push(`step ${step}/${steps.length} waits for a person: sluice approvals approve ${run.id} ${gate.stepId}`)
  if (endedAtMs !== null) lines.push(`${status}${reason === null ? '' : `: ${oneLine(reason, ERROR_CHARS_MAX)}`}`)
  return lines
}
