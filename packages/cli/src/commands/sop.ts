/** `sluice sop list`, `show` and `validate`: the definitions of procedures. */

import { MAIN_AGENT, oneLine } from '@sluice/sdk'
import type { ShownSop } from '@sluice/sop/shown'
import type { ShownDefinition, ShownProblem } from '@sluice/sop/shown-definition'
import { apiPath } from '../api/api.ts'
import { withApi } from '../api/open-api.ts'
import type { CliContext, Output } from '../context.ts'
import { limitOfAll } from '../option-values.ts'
import { printBlock, printFields, TEXT_CHARS_MAX } from '../print-details.ts'

/** The answer of `GET /api/sops/problems`. */
interface Problems {
  readonly folder: string
  readonly ok: boolean
  readonly loaded: number
  readonly broken: number
  readonly waiting: number
  readonly problems: readonly ShownProblem[]
}

const NEEDS = { config: true } as const

export async function list(context: CliContext): Promise<number> {
  const { out, json } = context
  const limit = limitOfAll(context)
  return withApi(
    context,
    async (api) => {
      const { sops: all } = await api.get<{ sops: readonly ShownSop[] }>('/api/sops')
      const sops = all.slice(0, limit)
      const { broken, folder, waiting } = await api.get<Problems>('/api/sops/problems')
      if (json) out.json(sops)
      else if (sops.length === 0) out.print(`no procedures in ${folder}; each is a folder with a SOP.toml and a SOP.md`)
      else out.table(['name', 'version', 'priority', 'mode', 'steps', 'active', 'waiting', 'triggers', 'description'], sops.map(tableRow))
      if (all.length > sops.length) out.warn(`there are ${all.length - sops.length} more: raise --limit`)
      if (waiting > 0) out.warn(`not loaded until an operator accepts them: ${waiting}; see sluice sop waiting`)
      if (broken > 0)
        out.warn(
          `${broken} ${broken === 1 ? 'folder has' : 'folders have'} errors and ${broken === 1 ? 'is' : 'are'} left out: sluice sop validate`,
        )
      return 0
    },
    NEEDS,
  )
}

const tableRow = (row: ShownSop): string[] => [
  oneLine(row.name, TEXT_CHARS_MAX),
  oneLine(row.version, TEXT_CHARS_MAX),
  row.priority,
  row.mode,
  String(row.steps),
  String(row.active_runs),
  String(row.waiting_runs),
  oneLine(row.triggers.join(' '), TEXT_CHARS_MAX * 2),
  oneLine(row.description, TEXT_CHARS_MAX),
]

export const show = async (context: CliContext): Promise<number> =>
  withApi(
    context,
    async (api) => {
      const { out, json, args } = context
      const definition = await api.get<ShownDefinition>(apiPath('/api/sops', args[0] ?? '', 'definition'))
      if (json) out.json(definition)
      else printDefinition(out, definition)
      return 0
    },
    NEEDS,
  )

function printDefinition(out: Output, definition: ShownDefinition): void {
  const {
    name,
    version,
    agent,
    description,
    priority,
    mode,
    cooldownSecs,
    maxConcurrent,
    maxWaiting,
    countWaiting,
    triggers,
    folder,
    steps,
  } = definition
  printFields(out, {
    name: `${name} ${version}`,
    description,
    agent: agent === MAIN_AGENT ? null : agent,
    priority,
    mode,
    cooldown: cooldownSecs > 0 ? `${cooldownSecs} s` : null,
    'runs at once': `${maxConcurrent}${countWaiting ? '' : ', runs that wait for a person not counted'}`,
    'runs that wait': `at most ${maxWaiting}`,
    triggers: triggers.map(({ text }) => text).join('\n') || 'none: it is started by hand',
    folder,
  })
  for (const step of steps) {
    printBlock(out, `${step.number}. ${step.title}${step.waits === null ? '' : ` (waits for a person: ${step.waits})`}`, step.body)
    if (step.tools) out.print(out.style('dim', `tools: ${step.tools.join(', ')}`))
    if (step.input !== null) out.print(out.style('dim', `input: ${JSON.stringify(step.input)}`))
    if (step.output !== null) out.print(out.style('dim', `output: ${JSON.stringify(step.output)}`))
  }
}

/** `sluice sop validate`: prints every problem with its place. Exits with 1 if an error keeps a procedure from loading. */
export const validate = async (context: CliContext): Promise<number> =>
  withApi(
    context,
    async (api) => {
      const { out, json } = context
      const { waiting: _, ...found } = await api.get<Problems>('/api/sops/problems')
      if (json) out.json(found)
      else printProblems(out, found)
      return found.ok ? 0 : 1
    },
    NEEDS,
  )

function printProblems(out: Output, { problems, loaded, folder }: Omit<Problems, 'waiting'>): void {
  const errors = problems.filter(({ severity }) => severity === 'error').length
  for (const problem of problems) out.print(problemLine(out, problem))
  const warnings = problems.length - errors
  const found = [errors > 0 && plural(errors, 'error'), warnings > 0 && plural(warnings, 'warning')].filter(Boolean).join(' and ')
  out.print(`${plural(loaded, 'procedure')} in ${folder} can run${found === '' ? '' : `; ${found}`}`)
}

/** Formats a problem as compilers do: `SOP.toml:3:1: error: …`. */
function problemLine(out: Output, { file, line, column, severity, message }: ShownProblem): string {
  const place = [file, line, column].filter((part) => part !== undefined).join(':')
  return `${place}: ${out.style(severity === 'error' ? 'red' : 'yellow', severity)}: ${message}`
}

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
