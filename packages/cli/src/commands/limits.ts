/** `sluice limits`: the clients that a limit holds back, and the shares that clients hold. */
import type { LimitsPage } from '@sluice/http/answers'
import type { Api } from '../api/api.ts'
import { deviceNames } from '../api/device-names.ts'
import { withApi } from '../api/open-api.ts'
import type { CliContext } from '../context.ts'
import { LIMIT_MAX, limitOfAll } from '../option-values.ts'

/** Resolves to a function that returns the cells of a client: the key that `limits reset` takes, and the same with the names of devices. */
async function clientCells(api: Api, shown: readonly { readonly client: string }[]): Promise<(client: string) => readonly string[]> {
  const named = await deviceNames(
    api,
    shown.map(({ client }) => client),
  )
  return (client) => [client, named(client) === client ? '' : named(client)]
}

export const list = (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    const { out, json } = context
    const limit = Math.min(limitOfAll(context), LIMIT_MAX)
    // One more than is shown tells whether there are more.
    const page = await api.get<LimitsPage>('/api/limits', { limit: limit + 1 })
    const limits = page.limits.slice(0, limit)
    if (json) out.json(limits)
    else if (limits.length === 0) out.print('no client is held back')
    else {
      const cells = await clientCells(api, limits)
      out.table(
        ['until', 'cause', 'client', 'name'],
        limits.map(({ until, cause, client }) => [until, cause, ...cells(client)]),
      )
    }
    if (page.limits.length > limit) out.warn('there are more: raise --limit')
    return 0
  })

export const shares = (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    const { out, json } = context
    const { shares: held } = await api.get<LimitsPage>('/api/limits', { limit: 1 })
    if (json) out.json(held)
    else if (held.length === 0) out.print('no client holds anything')
    else {
      const cells = await clientCells(api, held)
      out.table(
        ['share', 'held', 'client', 'name'],
        held.map((one) => [one.share, String(one.held), ...cells(one.client)]),
      )
    }
    return 0
  })

export const reset = (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    const { args, out, json } = context
    const answer = await api.post<{ client: string }>('/api/limits/reset', { client: args[0] ?? '' })
    if (json) out.json(answer)
    else out.print(`reset ${answer.client}`)
    return 0
  })
