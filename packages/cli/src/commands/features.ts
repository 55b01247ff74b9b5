/** `sluice features`: every feature of the catalogue, with its state in this build and configuration. */
import { openRuntime } from '@sluice/runtime'
import type { CliContext } from '../context.ts'

/** Builds the features in this process. A running daemon knows only their state at its own start. */
export async function run(context: CliContext): Promise<number> {
  const { out, json } = context
  const runtime = await openRuntime({ ...context, quiet: true })
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
      yesOrNo(row.compiled),
      yesOrNo(row.installed),
      yesOrNo(row.configured),
      row.state.replace('_', ' '),
      [row.reason, row.build].filter(Boolean).join(': '),
    ]),
  )
  return 0
}

const yesOrNo = (value: boolean): string => (value ? 'yes' : 'no')
