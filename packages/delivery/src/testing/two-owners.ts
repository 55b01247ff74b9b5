/** Two processes that share a database as two nodes of a cluster do, each the owner of other shards. */
import { ShardOwnership } from '@sluice/ownership'
import { CLUSTER_ROLES, type ClusterStore, SHARDS, shardsLease } from '@sluice/sdk'
import { bench, clock, type DeliveryBench, type DeliveryBenchOptions, host, open } from './delivery-bench.ts'

/** Resolves to the owner of one shard and to that of all others. */
export async function twoOwners(
  shard: number,
  options: DeliveryBenchOptions = {},
): Promise<{ readonly owner: DeliveryBench; readonly other: DeliveryBench }> {
  const store = options.store ?? open()
  const ownerOf = async (shards: readonly number[]): Promise<DeliveryBench> => {
    let left = [...shards]
    const cluster = {
      roles: CLUSTER_ROLES,
      async claimShards() {
        const taken = await Promise.all(left.map((one) => store.leases.acquire(shardsLease({ from: one, to: one }))))
        left = []
        return { share: shards.length, isDrained: false, taken }
      },
      changed: () => new Promise<void>(() => {}),
      leave: async () => {},
    } as unknown as ClusterStore
    const ownership = new ShardOwnership({ store: { ...store, cluster }, clock, log: host.log })
    await ownership.start()
    return bench({ ...options, store, ownership })
  }
  const others = Array.from({ length: SHARDS }, (_, one) => one).filter((one) => one !== shard)
  return { owner: await ownerOf([shard]), other: await ownerOf(others) }
}
