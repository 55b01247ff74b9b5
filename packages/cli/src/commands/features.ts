/** `sluice features`: every feature of the catalogue, with its state in the running daemon or, without one, in this configuration. */
import type { FeaturesPage } from '@sluice/http/answers'
import { withApi } from '../api/open-api.ts'
import type { CliContext } from '../context.ts'

export const run = (context: CliContext): Promise<number> =>
  withApi(
    context,
    async (api) => {
      const { out, json } = context
      const { features } = await api.get<FeaturesPage>('/api/features')
      if (json) {
        out.json(features.map(({ installed: _installed, ...row }) => row))
        return 0
      }
      out.table(
        ['feature', 'flag', 'compiled', 'installed', 'configured', 'state', 'why / how to get it'],
        features.map((row) => [
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
    },
    { features: true },
  )

const yesOrNo = (value: boolean): string => (value ? 'yes' : 'no')
