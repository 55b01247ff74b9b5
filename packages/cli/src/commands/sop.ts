/** `sluice sop list`, `show` and `validate`: the definitions of procedures. */

import { oneLine } from '@sluice/sdk'
import { gateBefore, type SopDefinition, type SopProblem, triggerText } from '@sluice/sop'
import { shownSop } from '@sluice/sop/shown'
import type { CliContext, Output } from '../context.ts'
import { printBlock, printFields, TEXT_CHARS_MAX } from '../print-details.ts'
import { openSops, sopNamed } from '../sops/open-sops.ts'
import { withStore } from '../with-store.ts'

export const list = (context: CliContext): Promise<number> =>
  withStore(context, async (store) => {
    const { out, json } = context
    const { definitions, broken, folder, waiting } = await openSops(context)
    const active = await store.sops.activeCounts()
    const rows = definitions.map(({ steps, triggers, ...definition }) =>
      shownSop({ ...definition, steps: steps.length, triggers: triggers.map(triggerText), activeRuns: active.get(definition.name) ?? 0 }),
    )
    if (json) out.json(rows)
    else if (rows.length === 0) out.print(`no procedures in ${folder}; each is a folder with a SOP.toml and a SOP.md`)
    else
      out.table(
        ['name', 'version', 'priority', 'mode', 'steps', 'active', 'triggers', 'description'],
        rows.map((row) => [
          oneLine(row.name, TEXT_CHARS_MAX),
          oneLine(row.version, TEXT_CHARS_MAX),
          row.priority,
          row.mode,
          String(row.steps),
          String(row.active_runs),
          oneLine(row.triggers.join(' '), TEXT_CHARS_MAX * 2),
          oneLine(row.description, TEXT_CHARS_MAX),
        ]),
      )
    if (waiting.length > 0) out.warn(`not loaded until an operator accepts them: ${waiting.length}; see sluice sop waiting`)
    if (broken > 0)
      out.warn(
        `${broken} ${broken === 1 ? 'folder has' : 'folders have'} errors and ${broken === 1 ? 'is' : 'are'} left out: sluice sop validate`,
      )
    return 0
  })

export async function show(context: CliContext): Promise<number> {
  const { out, json, args } = context
  const definition = sopNamed(await openSops(context), args[0] ?? '')
  if (json) out.json({ ...definition, steps: definition.steps.map((step) => ({ ...step, waits: gateOf(definition, step.number) })) })
  else printDefinition(out, definition)
  return 0
}

/** Returns the reason why a step waits for a person; null if it does not wait. */
const gateOf = ({ mode, priority, steps }: SopDefinition, number: number): string | null => {
  const step = steps[number - 1]
  return step ? gateBefore(mode, priority, step) : null
}

function printDefinition(out: Output, definition: SopDefinition): void {
  const { name, version, description, priority, mode, cooldownSecs, maxConcurrent, triggers, folder, steps } = definition
  printFields(out, {
    name: `${name} ${version}`,
    description,
    priority,
    mode,
    cooldown: cooldownSecs > 0 ? `${cooldownSecs} s` : null,
    'runs at once': String(maxConcurrent),
    triggers: triggers.map(triggerText).join('\n') || 'none: it is started by hand',
    folder,
  })
  for (const step of steps) {
    const gate = gateOf(definition, step.number)
    printBlock(out, `${step.number}. ${step.title}${gate === null ? '' : ` (waits for a person: ${gate})`}`, step.body)
    if (step.tools) out.print(out.style('dim', `tools: ${step.tools.join(', ')}`))
    if (step.input !== null) out.print(out.style('dim', `input: ${JSON.stringify(step.input)}`))
    if (step.output !== null) out.print(out.style('dim', `output: ${JSON.stringify(step.output)}`))
  }
}

/** `sluice sop validate`: prints every problem with its place. Exits with 1 if an error keeps a procedure from loading. */
export async function validate(context: CliContext): Promise<number> {
  const { out, json } = context
  const { definitions, problems, broken, folder } = await openSops(context)
  const errors = problems.filter(({ severity }) => severity === 'error').length
  if (json) out.json({ folder, ok: errors === 0, loaded: definitions.length, broken, problems })
  else {
    for (const problem of problems) out.print(problemLine(out, problem))
    const warnings = problems.length - errors
    const found = [errors > 0 && plural(errors, 'error'), warnings > 0 && plural(warnings, 'warning')].filter(Boolean).join(' and ')
    out.print(`${plural(definitions.length, 'procedure')} in ${folder} can run${found === '' ? '' : `; ${found}`}`)
  }
  return errors === 0 ? 0 : 1
}

/** Formats a problem as compilers do: `SOP.toml:3:1: error: …`. */
function problemLine(out: Output, { file, line, column, severity, message }: SopProblem): string {
  const place = [file, line, column].filter((part) => part !== undefined).join(':')
  return `${place}: ${out.style(severity === 'error' ? 'red' : 'yellow', severity)}: ${message}`
}

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
