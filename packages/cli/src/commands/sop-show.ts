/** `sluice sop show`: one procedure, with its steps and which of them wait for a person. */
import { gateBefore, type SopDefinition, triggerText } from '@sluice/sop'
import type { CliContext, Output } from '../context.ts'
import { printBlock, printFields } from '../deliveries/show.ts'
import { openSops, sopNamed } from '../sops/open-sops.ts'

export async function run(context: CliContext): Promise<number> {
  const { out, json, args } = context
  const definition = sopNamed(await openSops(context), args[0] ?? '')
  if (json) out.json({ ...definition, steps: definition.steps.map((step) => ({ ...step, waits: gateOf(definition, step.number) })) })
  else print(out, definition)
  return 0
}

const gateOf = ({ mode, priority, steps }: SopDefinition, number: number): string | null => {
  const step = steps[number - 1]
  return step ? gateBefore(mode, priority, step) : null
}

function print(out: Output, definition: SopDefinition): void {
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
    const waits = gateOf(definition, step.number)
    printBlock(out, `${step.number}. ${step.title}${waits === null ? '' : ` (waits for a person: ${waits})`}`, step.body)
    if (step.tools) out.print(out.style('dim', `tools: ${step.tools.join(', ')}`))
    if (step.input !== null) out.print(out.style('dim', `input: ${JSON.stringify(step.input)}`))
    if (step.output !== null) out.print(out.style('dim', `output: ${JSON.stringify(step.output)}`))
  }
}
