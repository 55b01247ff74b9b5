/** `sluice cluster`: the nodes that share the database, and what each of them owns. */
import type { ClusterStatus } from '@sluice/http/answers'
import { pathSegment } from '@sluice/kit'
import { CLOCK_OFFSET_MS_MAX } from '@sluice/sdk'
import type { Api } from '../api/api.ts'
import { withApi } from '../api/open-api.ts'
import type { CliContext } from '../context.ts'
import { shownPrograms } from '../mcp-programs.ts'

export const status = (context: CliContext): Promise<number> => show(context, (api) => api.get<ClusterStatus>('/api/cluster'))

export const drain = (context: CliContext): Promise<number> => show(context, (api) => api.post<ClusterStatus>(pathOf(context, 'drain'), {}))

export const undrain = (context: CliContext): Promise<number> =>
  show(context, (api) => api.post<ClusterStatus>(pathOf(context, 'undrain'), {}))

export const rebalance = (context: CliContext): Promise<number> =>
  show(context, (api) => api.post<ClusterStatus>('/api/cluster/rebalance', {}))

const pathOf = ({ args }: CliContext, verb: string): string => `/api/cluster/nodes/${pathSegment(args[0] ?? '')}/${verb}`

const show = (context: CliContext, ask: (api: Api) => Promise<ClusterStatus>): Promise<number> =>
  withApi(context, async (api) => {
    const { out, json } = context
    const cluster = await ask(api)
    if (json) {
      out.json(cluster)
      return 0
    }
    out.table(
      ['node', 'state', 'shards', 'leases', 'roles', 'version', 'seen', 'clock', 'url'],
      cluster.nodes.map(({ node, state, shards, leases, roles, version, silent_ms, clock_offset_ms, url }) => [
        node,
        state,
        String(shards),
        String(leases.length),
        roles.join(','),
        version,
        `${(silent_ms / 1000).toFixed(1)} s ago`,
        clock_offset_ms === null ? '' : signed(clock_offset_ms),
        url ?? '',
      ]),
    )
    for (const { node, programs } of cluster.nodes)
      if (programs && programs.length > 0) out.hint(`MCP programs of ${node}: ${shownPrograms(programs)}`)
    for (const { state, text, fix } of cluster.problems)
      out.hint(`${out.style(state === 'failing' ? 'red' : 'yellow', state)}: ${text} To repair it: ${fix}`)
    for (const { node, state, shards } of cluster.nodes)
      if (state === 'drained' && shards > 0)
        out.warn(`${node} still gives ${shards} shards away: 'sluice cluster status' shows when it has none`)
    for (const { node, clock_offset_ms: ms } of cluster.nodes)
      if (ms !== null && Math.abs(ms) > CLOCK_OFFSET_MS_MAX)
        out.warn(`the clock of ${node} is wrong by ${signed(ms)}, measured by that of the database: 'sluice doctor' says what to do`)
    if (cluster.unowned_shards > 0) out.warn(`${cluster.unowned_shards} shards have no owner now: their work waits`)
    return 0
  })

/** `+0.2 s` for a clock that is ahead. */
const signed = (ms: number): string => `${ms < 0 ? '-' : '+'}${(Math.abs(ms) / 1000).toFixed(1)} s`
