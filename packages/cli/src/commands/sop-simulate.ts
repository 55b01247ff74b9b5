/** `sluice sop simulate`: shows the effects of an event, without running or storing anything. */
import { readFile } from 'node:fs/promises'
import { AppError, errorText } from '@sluice/sdk'
import type { SimulatedSop } from '@sluice/sop/simulate'
import { withApi } from '../api/open-api.ts'
import type { CliContext, Output } from '../context.ts'
import { readInput } from '../read-input.ts'

const EVENT_BYTES_MAX = 1024 * 1024

export async function run(context: CliContext): Promise<number> {
  const { out, json, args, options } = context
  if (typeof options.event !== 'string')
    throw new AppError('invalid_request', 'sluice sop simulate wants --event <file>; - is standard input')
  const event = parseEvent(await readEventText(context, options.event), options.event)
  return withApi(
    context,
    async (api) => {
      const { procedures } = await api.post<{ procedures: SimulatedSop[] }>('/api/sops/simulate', { event, sop: args[0] })
      // Without a name, procedures that the event does not concern are left out.
      const shown = args[0] === undefined ? procedures.filter(({ starts, held }) => starts || held !== null) : procedures
      if (json) out.json(shown)
      else if (shown.length === 0) out.print(`no procedure of ${procedures.length} is triggered by ${nameOf(event)}`)
      else for (const result of shown) printResult(out, result)
      return 0
    },
    { config: true },
  )
}

/** Names an event that the API has accepted. */
const nameOf = (event: unknown): string => {
  const { source, topic } = event as Readonly<Record<string, unknown>>
  return `${source} ${topic}`
}

async function readEventText({ stdin }: CliContext, file: string): Promise<string> {
  if (file === '-') return readInput(stdin, EVENT_BYTES_MAX)
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw new AppError('invalid_request', `${file} cannot be read: ${errorText(error)}`)
  }
}

function parseEvent(text: string, file: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new AppError('invalid_request', `${file} is not JSON: ${errorText(error)}`)
  }
}

const WORKERS = { agent: 'the agent works on it', tool: 'one tool call, no model', nobody: 'nothing but the wait' } as const

function printResult(out: Output, { sop, triggers, starts, held, steps, cost }: SimulatedSop): void {
  out.print(out.style('bold', sop))
  for (const { trigger, condition, matches, why } of triggers) {
    const when = condition === null ? '' : ` when ${[condition].flat().join(' and ')}`
    out.print(`  ${matches ? 'matches' : 'does not match'} ${trigger}${when}${why === null ? '' : `: ${why}`}`)
  }
  if (triggers.length === 0) out.print('  has no triggers: it is started by hand')
  out.print(starts ? '  would start' : `  would not start${held === null ? '' : `: ${held}`}`)
  for (const { number, title, waits, by, tools } of steps) {
    const parts = [
      waits === null ? undefined : `waits for a person (${waits})`,
      WORKERS[by],
      tools && by !== 'nobody' && `tools: ${tools.join(', ')}`,
    ]
    out.print(`  ${number}. ${title}: ${parts.filter(Boolean).join('; ')}`)
  }
  out.print(`  ${costText(cost)}`)
}

function costText({ modelCalls, usd }: SimulatedSop['cost']): string {
  const calls = modelCalls.max === 0 ? 'no model calls' : `${modelCalls.min} to ${modelCalls.max} model calls`
  if (usd !== null) return `${calls}, ${dollars(usd.min)} to ${dollars(usd.max)}`
  return modelCalls.max === 0 ? calls : `${calls}, price unknown: see [cost] prices`
}

const dollars = (usd: number): string => `$${usd.toFixed(usd < 0.01 ? 6 : 2)}`
