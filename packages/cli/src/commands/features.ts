/** `sluice features`: every feature there is, and how it stands in this build and configuration. */
import type { CliContext } from '../context.ts'
import { openFromContext } from '../open.ts'

/** Builds and registers the features to see how they stand: what a running daemon knows is as of its own start. */
export async function run(context: CliContext): Promise<number> {
  const { out, json } = context
  const runtime = await openFromContext(context)
  const rows = runtime.snapshot().features
  await runtime.close(0)
  if (json) {
    out.json(rows.map(({ installed: _installed, ...row }) => row))
    return 0
  }
  out.table(
    ['feature', 'flag', 'compiled', 'installed', 'configured', 'state', 'why / how to get it'],
    rows.map((row) => [
      row.feature,
      row.flag ?? '-',
      yes(row.compiled),
      yes(row.installed),
      yes(row.configured),
      row.state.replace('_', ' '),
      [row.reason, row.build].filter(Boolean).join(': '),
    ]),
  )
  return 0
}

const yes = (value: boolean): string => (value ? 'yes' : 'no')
