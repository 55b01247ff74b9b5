/** What is wrong with a procedure as a whole, once each of its files is well-formed (§4.3). */

import { type Finding, locateFindings } from '@sluice/config'
import type { SopMode } from '@sluice/sdk'
import type { SopProblem } from './definition.ts'
import type { ParsedSteps } from './parse-sop-md.ts'
import type { SopToml } from './parse-sop-toml.ts'

/** What `SOP.toml` says that is legal but hardly meant. */
export async function tomlWarnings(file: string, text: string, { sop, triggers }: SopToml): Promise<SopProblem[]> {
  const findings: Finding[] = []
  if (sop.description.trim() === '') findings.push({ path: ['sop', 'description'], at: 'value', message: '`sop.description` is empty' })
  if (sop.max_concurrent === 0) {
    findings.push({ path: ['sop', 'max_concurrent'], at: 'value', message: '`sop.max_concurrent` is 0, so it can never start' })
  }
  if (sop.deterministic && sop.execution_mode !== undefined && sop.execution_mode !== 'deterministic') {
    const message = '`sop.execution_mode` is not used, since `sop.deterministic` is true'
    findings.push({ path: ['sop', 'execution_mode'], at: 'value', message })
  }
  if (triggers.length === 0)
    findings.push({ path: ['triggers'], at: 'nowhere', message: 'it has no triggers, so it is only started by hand' })
  const located = findings.length > 0 ? await locateFindings(file, text, findings) : []
  return located.map(({ key: _, ...problem }) => ({ ...problem, severity: 'warning' }))
}

/** What the mode demands of the steps. */
export function stepProblems(file: string, mode: SopMode, { steps, lines }: Pick<ParsedSteps, 'steps' | 'lines'>): SopProblem[] {
  const isIdle = steps.length > 0 && steps.every(({ kind }) => kind === 'checkpoint')
  const message = 'every step is a checkpoint: a run does nothing, and can only fail'
  return [...(isIdle ? [{ file, severity: 'warning', message } as const] : []), ...eachStep(file, mode, { steps, lines })]
}

function eachStep(file: string, mode: SopMode, { steps, lines }: Pick<ParsedSteps, 'steps' | 'lines'>): SopProblem[] {
  return steps.flatMap((step, index): SopProblem[] => {
    const place = { file, line: lines[index] ?? 1, column: 1 }
    const name = `step ${step.number}`
    if (mode !== 'deterministic') {
      if (step.input === null) return []
      return [{ ...place, severity: 'warning', message: `the input of ${name} is only used in deterministic mode` }]
    }
    if (step.kind === 'checkpoint') return []
    const problems: SopProblem[] = []
    if (step.tools?.length !== 1) {
      problems.push({ ...place, severity: 'error', message: `${name} must name exactly one tool, as every step in deterministic mode` })
    }
    if (step.requiresConfirmation) {
      const message = `${name} would not wait: in deterministic mode only steps of \`kind: checkpoint\` do`
      problems.push({ ...place, severity: 'error', message })
    }
    return problems
  })
}
