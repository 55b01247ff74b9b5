/** Checks the cluster of a daemon: that every node lives, has the same key, release and configuration, and that every shard has an owner. */
import { type ClusterNode, type ClusterStore, SHARDS } from '@sluice/sdk'
import { compareNodes } from '../cluster/compare-nodes.ts'
import { wrongClock } from '../cluster/wrong-clock.ts'
import { type Check, fail, ok, warn } from './check.ts'

/** Empty for a daemon on its own. */
export async function checkCluster(cluster: Pick<ClusterStore, 'name' | 'nodes'> | undefined): Promise<Check[]> {
  if (!cluster) return []
  const nodes = await cluster.nodes()
  const live = nodes.filter(({ state }) => state !== 'dead')
  const found = [
    ...keys(live),
    ...deaths(nodes),
    ...releases(live),
    ...configurations(live),
    ...clocks(live),
    ...folders(live),
    ...shards(live),
  ]
  if (found.some(({ status }) => status !== 'ok')) return found
  return [ok('cluster', `${cluster.name}: ${live.length === 0 ? 'no node runs' : named(live)}`), ...found]
}

function keys(nodes: readonly ClusterNode[]): Check[] {
  const ids = [...new Set(nodes.map(({ keyId }) => keyId))]
  if (ids.length < 2) return []
  const each = ids.map((id) => `${id ?? 'no key'}: ${named(nodes.filter(({ keyId }) => keyId === id))}`)
  return [
    fail(
      'cluster',
      `nodes have different keys for secrets (${each.join('; ')})`,
      'copy secret.key of one node to the others, and restart them',
    ),
  ]
}

/** A node that was stopped in order is not listed at all. */
function deaths(nodes: readonly ClusterNode[]): Check[] {
  return nodes.flatMap(({ node, state, silentMs }) => {
    if (state === 'drained') return [warn('cluster', `${node} is drained, and owns nothing`, `sluice cluster undrain ${node}`)]
    if (state !== 'dead') return []
    return [
      warn(
        'cluster',
        `${node} has given no sign of life for ${Math.round(silentMs / 1000)} s`,
        'start it again; its log says why it ended',
      ),
    ]
  })
}

function releases(nodes: readonly ClusterNode[]): Check[] {
  const versions = [...new Set(nodes.map(({ version }) => version))]
  if (versions.length < 2) return []
  const each = versions.map((version) => `${version}: ${named(nodes.filter((node) => node.version === version))}`)
  return [warn('cluster', `nodes run different releases (${each.join('; ')})`, 'finish the upgrade of all nodes')]
}

function configurations(nodes: readonly ClusterNode[]): Check[] {
  const newest = Math.max(...nodes.map(({ configVersion }) => configVersion ?? 0))
  const late = nodes.filter(({ configVersion }) => configVersion !== null && configVersion < newest)
  if (late.length === 0) return []
  return [warn('cluster', `${named(late)} without version ${newest} of the configuration`, 'its log says why it did not take it')]
}

function clocks(nodes: readonly ClusterNode[]): Check[] {
  return nodes.flatMap(({ node, clockOffsetMs }) => {
    const wrong = wrongClock(node, clockOffsetMs)
    return wrong === undefined
      ? []
      : [warn('cluster', wrong, 'let its machine and that of the database take the time from the same servers')]
  })
}

function folders(nodes: readonly ClusterNode[]): Check[] {
  return compareNodes(nodes).map(({ state, text, fix }) => (state === 'failing' ? fail : warn)('cluster', text, fix))
}

function shards(nodes: readonly ClusterNode[]): Check[] {
  const free = SHARDS - nodes.reduce((sum, node) => sum + node.shards, 0)
  if (nodes.length === 0 || free === 0) return []
  return [
    warn(
      'cluster',
      `${free} of ${SHARDS} shards have no owner now: their work waits`,
      'look again in a few seconds; a node with the role worker takes them',
    ),
  ]
}

const named = (nodes: readonly ClusterNode[]): string => nodes.map(({ node }) => node).join(', ')
