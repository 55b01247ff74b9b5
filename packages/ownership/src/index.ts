/** Which node owns which shards: acquires their leases, renews them, and tells the parts that work on them. */

export type { ShardListener } from './held-shards.ts'
export { type Home, Homes } from './homes.ts'
export { type Ownership, ShardOwnership, type ShardOwnershipOptions } from './ownership.ts'
