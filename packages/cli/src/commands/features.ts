/** `sluice features`: every feature there is, and how it stands in this build and configuration. */
import { featureTable } from '@sluice/gateway'
import type { CliContext } from '../context.ts'

export async function run({ out, json, ...context }: CliContext): Promise<number> {
  const rows = await featureTable(context)
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
