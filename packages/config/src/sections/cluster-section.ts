/** The section `[cluster]`: how this daemon shares one database with others. Its presence turns the cluster on. */
import { CLUSTER_ROLES, fromEnv, httpUrl } from '@sluice/sdk'
import * as v from 'valibot'
import type { Finding } from '../toml/problem.ts'
import type { LoadedConfig } from '../types.ts'

/** `[cluster]`. */
export const clusterSection = {
  path: 'cluster',
  schema: v.object({
    name: v.optional(
      v.pipe(
        v.string(),
        v.regex(/^[a-z][a-z0-9-]{0,31}$/, 'must be a name of lower-case letters, digits and hyphens'),
        v.description('The name of the cluster, which all its nodes share. It turns the cluster on and needs [store] backend = "postgres"'),
      ),
    ),
    node: v.optional(
      v.pipe(
        v.string(),
        v.regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, 'must be a name of letters, digits, dots, hyphens and underscores'),
        fromEnv('SVC_CLUSTER_NODE'),
        v.description('The name of this node, which no other node of the cluster has; without it, the host name'),
      ),
    ),
    roles: v.optional(
      v.pipe(
        v.array(v.picklist(CLUSTER_ROLES)),
        v.minLength(1, 'must name at least one role'),
        v.description(
          'What this node does. ingress: takes webhooks. worker: runs turns, procedures and replies. channels: holds connections',
        ),
      ),
      [...CLUSTER_ROLES],
    ),
    config: v.optional(
      v.pipe(
        v.picklist(['database', 'file']),
        v.description(
          'Where the configuration is. database: all nodes share it, except for [store], [cluster], the address and hardware. file: each node has its own',
        ),
      ),
      'database',
    ),
    advertise: v.optional(v.pipe(httpUrl(), v.description('The URL at which other nodes and operators reach this node'))),
  }),
} as const

export type ClusterConfig = v.InferOutput<typeof clusterSection.schema>

/** Finds settings of a cluster that cannot be one. */
export function clusterFindings(config: LoadedConfig, backend: string): Finding[] {
  const { name, node, roles, advertise } = config.core(clusterSection)
  const problem = (key: string, message: string): Finding[] => [{ path: ['cluster', key], at: 'value', message }]
  if (name !== undefined)
    return backend === 'sqlite'
      ? problem('name', '`[cluster]` needs a database that its nodes share: set `store.backend` to "postgres" and `store.url`')
      : []
  if (node === undefined && advertise === undefined && roles.length === CLUSTER_ROLES.length) return []
  const given = node !== undefined ? 'node' : advertise !== undefined ? 'advertise' : 'roles'
  return problem(given, `\`cluster.${given}\` is set, but \`cluster.name\` is not: name the cluster, or remove the section`)
}
