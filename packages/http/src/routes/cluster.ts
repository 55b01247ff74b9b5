/** `/api/cluster`: the nodes that share the database, and which of them own what. */
import { isoTime } from '@sluice/kit'
import type { Runtime } from '@sluice/runtime'
import { compareNodes } from '@sluice/runtime/compare-nodes'
import { AppError, CLUSTER_ROLES, type ClusterNode, type ClusterStore, defineRoute, type Route, SHARDS } from '@sluice/sdk'
import * as v from 'valibot'
import { recordAction } from '../request/record-action.ts'

const nodeSchema = v.object({
  node: v.string(),
  state: v.pipe(
    v.picklist(['up', 'drained', 'leaving', 'dead']),
    v.description('`drained`: an operator has asked it to own nothing. `dead`: it has given no sign of life for 6 seconds'),
  ),
  roles: v.array(v.picklist(CLUSTER_ROLES)),
  url: v.pipe(v.nullable(v.string()), v.description('`[cluster] advertise` of the node')),
  version: v.string(),
  schema_version: v.number(),
  config_version: v.pipe(v.nullable(v.number()), v.description('Null where the node has a configuration of its own')),
  key_id: v.pipe(v.nullable(v.string()), v.description('The key for secrets that it encrypts with')),
  shards: v.pipe(v.number(), v.description('The shards that it owns; 0 for a dead node, whose leases have ended')),
  leases: v.pipe(v.array(v.string()), v.description('Its leases of channels and leaders')),
  silent_ms: v.pipe(v.number(), v.description('The time since its last sign of life. Its leases end after 6 seconds without one')),
  clock_offset_ms: v.pipe(
    v.nullable(v.number()),
    v.description('How far its clock is ahead of that of the database, negative when it is behind; null until it has measured it'),
  ),
  started_at: v.string(),
  folders: v.pipe(
    v.nullable(
      v.array(
        v.object({
          name: v.pipe(v.string(), v.description('Such as `workspace`, `files` or `procedures`')),
          path: v.string(),
          digest: v.pipe(
            v.nullable(v.string()),
            v.description('The SHA-256 of the content of `procedures`, `skills` and `identity files`'),
          ),
          problem: v.pipe(v.nullable(v.string()), v.description('Why the node cannot reach the folder, write to it, or compare it')),
        }),
      ),
    ),
    v.description('The folders that all nodes must have in common; null until the node has looked at them, and of an earlier release'),
  ),
  programs: v.pipe(
    v.nullable(v.array(v.object({ server: v.string(), processes: v.number() }))),
    v.description('The MCP servers that are programs of the node, with the number of their processes there'),
  ),
})

const clusterSchema = v.object({
  name: v.string(),
  node: v.pipe(v.string(), v.description('The node that answers')),
  unowned_shards: v.pipe(v.number(), v.description('Shards whose work waits for a node to take them')),
  nodes: v.array(nodeSchema),
  problems: v.pipe(
    v.array(
      v.object({
        state: v.pipe(v.picklist(['failing', 'warning']), v.description('`failing`: nodes do wrong work because of it')),
        text: v.string(),
        fix: v.string(),
      }),
    ),
    v.description('What differs between the folders that all nodes must have in common'),
  ),
})
/** The answer of `GET /api/cluster`. */
export type ClusterStatus = v.InferOutput<typeof clusterSchema>

const answers = { 200: { description: 'The nodes', schema: clusterSchema } }

export function clusterRoutes(runtime: Runtime): Route[] {
  const { store } = runtime
  const drain = (verb: 'drain' | 'undrain', summary: string): Route =>
    defineRoute({
      method: 'POST',
      path: `/api/cluster/nodes/:node/${verb}`,
      summary,
      auth: 'operator',
      answers,
      async handle({ by, params: { node = '' } }) {
        const cluster = clusterOf(store)
        if (!(await cluster.drain(node, verb === 'drain'))) throw new AppError('not_found', `The cluster has no node "${node}"`)
        await recordAction(runtime, `node_${verb}ed`, by, { node })
        return statusOf(cluster)
      },
    })
  return [
    defineRoute({
      method: 'GET',
      path: '/api/cluster',
      summary: 'The nodes of the cluster, with what each owns',
      auth: 'operator',
      answers,
      handle: () => statusOf(clusterOf(store)),
    }),
    drain('drain', 'Ask a node to own nothing, also after a restart; what runs there ends first'),
    drain('undrain', 'Let a node own its share again'),
    defineRoute({
      method: 'POST',
      path: '/api/cluster/rebalance',
      summary: 'Make all nodes compare their shards with their share now',
      auth: 'operator',
      answers,
      async handle() {
        const cluster = clusterOf(store)
        await cluster.rebalance()
        return statusOf(cluster)
      },
    }),
  ]
}

function clusterOf({ cluster }: Runtime['store']): ClusterStore {
  if (cluster) return cluster
  throw new AppError('not_found', 'This daemon is not part of a cluster: [cluster] name is not set')
}

async function statusOf(cluster: ClusterStore): Promise<ClusterStatus> {
  const nodes = await cluster.nodes()
  const owned = nodes.reduce((sum, { state, shards }) => sum + (state === 'dead' ? 0 : shards), 0)
  return {
    name: cluster.name,
    node: cluster.node,
    unowned_shards: SHARDS - owned,
    nodes: nodes.map(nodeAnswer),
    problems: compareNodes(nodes),
  }
}

const nodeAnswer = (node: ClusterNode): ClusterStatus['nodes'][number] => ({
  node: node.node,
  state: node.state,
  roles: [...node.roles],
  url: node.url,
  version: node.version,
  schema_version: node.schemaVersion,
  config_version: node.configVersion,
  key_id: node.keyId,
  shards: node.shards,
  leases: [...node.leases],
  silent_ms: Math.round(node.silentMs),
  clock_offset_ms: node.clockOffsetMs === null ? null : Math.round(node.clockOffsetMs),
  started_at: isoTime(node.startedAtMs),
  folders: node.report?.folders.map(({ name, path, digest, problem }) => ({ name, path, digest, problem })) ?? null,
  programs: node.report?.programs ?? null,
})
