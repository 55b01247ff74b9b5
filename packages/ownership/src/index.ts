/** Which node owns which shards: acquires their leases, renews them, and tells the parts that work on them. */

export { concerns, type Ownership, type ShardListener, ShardOwnership, type ShardOwnershipOptions } from './ownership.ts'
