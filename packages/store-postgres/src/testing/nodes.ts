/** Nodes of a cluster on one schema, for tests. */
import { randomUUID } from 'node:crypto'
import { systemClock } from '@sluice/kit'
import { CLUSTER_ROLES, type Clock, type ClusterStore, type Store } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { openPostgresStore } from '../open-store.ts'

export interface TestNode {
  readonly store: Store
  readonly cluster: ClusterStore
}

/** The caller closes the store. */
export async function openNode(url: string, schema: string, clock: Clock = systemClock): Promise<TestNode> {
  const node = randomUUID()
  const cluster = { name: 'test', node, roles: CLUSTER_ROLES, url: null, version: '1.0.0' }
  const store = await openPostgresStore({ url, schema, node, cluster, readers: 1, writers: 2, clock, log: testHost().log })
  if (!store.cluster) throw new Error('the store was opened for a cluster')
  // The node counts as alive.
  await store.cluster.claimShards()
  return { store, cluster: store.cluster }
}
