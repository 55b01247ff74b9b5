/** `sluice logs`: prints the lines of the log that the running daemon keeps in memory, and new ones as they come. */
import { type LogEntry, logText, type Painted } from '@sluice/runtime/log-text'
import { AppError } from '@sluice/sdk'
import type { Api } from '../api/api.ts'
import type { CliContext, Style } from '../context.ts'
import { textOption, wholeNumber } from '../option-values.ts'
import { askRunning } from '../probe-daemon.ts'

const LINES_MAX = 1000
const LINES_DEFAULT = 50
const STYLES: Readonly<Record<Painted, Style | undefined>> = { debug: 'dim', info: 'green', warn: 'yellow', error: 'red', name: 'dim' }

/** A line as the API answers it; further members are its fields. */
type Line = Omit<LogEntry, 'fields'> & { readonly number: number; readonly [field: string]: unknown }

export async function run(context: CliContext): Promise<number> {
  const text = textOption(context, 'lines')
  const limit = text === undefined ? LINES_DEFAULT : wholeNumber('--lines', text, 0, LINES_MAX)
  const level = textOption(context, 'level')
  const done = await askRunning(context, async (api) => {
    const { lines } = await api.get<{ readonly lines: readonly Line[] }>('/api/logs', { level, limit: Math.max(1, limit) })
    const shown = limit === 0 ? [] : lines
    for (const line of shown) print(context, line)
    if (context.options.follow === true) await follow(context, api, { level, after: lines.at(-1)?.number ?? 0 })
    return true
  })
  if (done) return 0
  throw new AppError(
    'unavailable',
    `no daemon runs on ${context.dataDir}. Its earlier log is where it was written: on the terminal, in a file, or in the journal of a service`,
  )
}

async function follow(context: CliContext, api: Api, query: { readonly level: string | undefined; readonly after: number }): Promise<void> {
  const signal = context.interrupted()
  try {
    for await (const line of api.lines<Line>('/api/logs/follow', { query, signal })) print(context, line)
  } catch (error) {
    // The connection ends with the daemon.
    if (!signal.aborted && !(error instanceof AppError && error.code === 'unavailable')) throw error
  }
  if (!signal.aborted) context.out.warn('the daemon has ended its log')
}

function print({ out, json }: CliContext, line: Line): void {
  if (json) {
    out.print(JSON.stringify(line))
    return
  }
  const { number: _, time, level, component, message, ...fields } = line
  const paint = (what: Painted, text: string): string => {
    const style = STYLES[what]
    return style === undefined ? text : out.style(style, text)
  }
  out.print(logText({ time, level, component, message, fields }, paint))
}
