/** Checks a procedure as a whole, after each of its files has been parsed. */
import { type Finding, locateFindings } from '@sluice/config'
import type { SopMode } from '@sluice/sdk'
import type { SopProblem } from '../definition/definition.ts'
import type { ParsedSteps } from '../definition/parse-sop-md.ts'
import type { SopToml } from '../definition/parse-sop-toml.ts'
import { type LoadRules, webhookProblem } from './load-rules.ts'

/** Returns warnings about settings of `SOP.toml` that are valid but probably a mistake. */
export async function tomlWarnings(
  file: string,
  text: string,
  { sop, triggers }: SopToml,
  rules: Pick<LoadRules, 'secretProblem' | 'roleProblem'> = {},
): Promise<SopProblem[]> {
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
    findings.push({ path: ['triggers'], at: 'nowhere', message: 'there are no triggers, so it can only be started by hand' })
  for (const [index, trigger] of triggers.entries()) {
    if (trigger.type !== 'webhook') continue
    const message = webhookProblem(trigger, rules)
    if (message !== undefined) findings.push({ path: ['triggers', index, trigger.auth ? 'secret' : 'path'], at: 'value', message })
  }
  const located = findings.length > 0 ? await locateFindings(file, text, findings) : []
  return located.map(({ key: _, ...problem }) => ({ ...problem, severity: 'warning' }))
}

/** Returns the steps that the execution mode does not allow, or in which a setting has no effect. */
export function stepProblems(file: string, mode: SopMode, parsed: ParsedSteps): SopProblem[] {
  const hasOnlyCheckpoints = parsed.steps.length > 0 && parsed.steps.every(({ kind }) => kind === 'checkpoint')
  const message = 'every step is a checkpoint, so each run does nothing and fails'
  return [...(hasOnlyCheckpoints ? [{ file, severity: 'warning', message } as const] : []), ...modeProblems(file, mode, parsed)]
}

function modeProblems(file: string, mode: SopMode, { steps, lines }: ParsedSteps): SopProblem[] {
  return steps.flatMap((step, index): SopProblem[] => {
    const position = { file, line: lines[index] ?? 1, column: 1 }
    const name = `step ${step.number}`
    if (mode !== 'deterministic') {
      if (step.input === null) return []
      return [{ ...position, severity: 'warning', message: `the input of ${name} is only used in deterministic mode` }]
    }
    if (step.kind === 'checkpoint') return []
    const problems: SopProblem[] = []
    if (step.tools?.length !== 1) {
      problems.push({ ...position, severity: 'error', message: `${name} must name exactly one tool, because the mode is deterministic` })
    }
    if (step.requiresConfirmation) {
      const message = `${name} cannot require confirmation: in deterministic mode only steps of \`kind: checkpoint\` wait`
      problems.push({ ...position, severity: 'error', message })
    }
    return problems
  })
}
