/** Describes a run of a procedure in words, for the model. */
import type { SopRun } from '@sluice/sdk'

const OUTPUT_CHARS_MAX = 2000

const iso = (ms: number): string => new Date(ms).toISOString()

/** Describes a run in one line. */
export const runLine = ({ id, sop, status, step, steps, startedAtMs }: SopRun): string =>
  `${id}: ${sop}, ${status}, step ${step} of ${steps.length}, started ${iso(startedAtMs)}`

/** Describes a run with its step results and what it does now; a long output is cut. */
export function runText(run: SopRun): string {
  const { step, gate, results, reason } = run
  const lines = [runLine(run)]
  for (const { step: number, status, output } of results) {
    lines.push(`Step ${number} (${titleOf(run, number)}): ${status}. ${output.slice(0, OUTPUT_CHARS_MAX)}`)
  }
  if (gate) lines.push(`It waits for a person before step ${step} (${titleOf(run, step)}), since ${iso(gate.sinceMs)}.`)
  if (run.status === 'running') lines.push(`Step ${step} (${titleOf(run, step)}) is being worked on.`)
  if (run.endedAtMs !== null) lines.push(`It ended ${iso(run.endedAtMs)}${reason === null ? '' : `: ${reason}`}.`)
  return lines.join('\n')
}

const titleOf = ({ steps }: SopRun, number: number): string => steps[number - 1]?.title ?? ''
