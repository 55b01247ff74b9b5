/** Checks the kept data: the database, the room that it takes, what retention deletes, and the owners of memories. */
import type { LoadedConfig } from '@sluice/config'
import { type MemoryStore, type Store, UNOWNED_MEMORIES } from '@sluice/sdk'
import { heldUntilMs, retentionOf } from '../retention.ts'
import { type Check, fail, ok, warn } from './check.ts'

const MEGABYTE = 1024 * 1024

export async function checkStore(store: Store): Promise<Check> {
  const problems = await store.check()
  if (problems.length === 0) return ok('store', 'every page and index is sound')
  const fix = store.checkServer ? 'restore the database from a backup of the server' : 'stop the daemon and restore sluice.db from a backup'
  return fail('store', problems.map(({ detail }) => detail).join('; '), fix)
}

export async function checkStorage(store: Store, config: LoadedConfig, nowMs: number): Promise<Check> {
  const usage = await store.usage()
  const retention = retentionOf(config, nowMs)
  const { copies } = usage
  const copied = copies.length > 0 ? `; copies from before an upgrade: ${copies.join(', ')}` : ''
  const size = `${megabytes(usage.bytes)} MB in use of ${megabytes(retention.bytesMax)} MB${copied}`
  const heldMs = heldUntilMs(usage.upgradedAtMs, nowMs)
  if (heldMs === undefined) return ok('storage', size)
  const { messages, replies, turns, approvals, runs, historyTurns, conversations } = await store.prunable(retention)
  const counts = { messages, replies, turns, approvals, runs, 'turns of conversations': historyTurns, conversations }
  const listed = Object.entries(counts).flatMap(([name, count]) => (count > 0 ? [`${count} ${name}`] : []))
  const excess = usage.bytes - retention.bytesMax
  if (excess > 0) listed.push(`the oldest ${megabytes(excess)} MB beyond [delivery] retention_mb`)
  if (listed.length === 0) return ok('storage', size)
  return warn(
    'storage',
    `${size}. Retention deletes nothing until ${new Date(heldMs).toISOString()}, because the data was upgraded; then it deletes ${listed.join(', ')}`,
    'raise [delivery] retention_days, retention_mb or [sessions] retention_days to keep them',
  )
}

const OWNERS_AT_ONCE = 1000

const megabytes = (bytes: number): string => (bytes / MEGABYTE).toFixed(1)

export async function checkMemory(memory: Pick<MemoryStore, 'owners' | 'count'>): Promise<Check> {
  const unowned = await memory.count(UNOWNED_MEMORIES)
  if (unowned > 0) {
    const detail = `memories of an earlier release that belong to no client, so that every client can recall them: ${unowned}`
    return warn('memory', detail, "give them an owner with 'sluice memory assign <owner>', or keep them for all with --shared")
  }
  let [count, owners] = [0, 0]
  for (let after: string | undefined; ; ) {
    const page = await memory.owners({ limit: OWNERS_AT_ONCE, ...(after !== undefined && { after }) })
    for (const owner of page) count += owner.count
    owners += page.length
    after = page.at(-1)?.owner
    if (page.length < OWNERS_AT_ONCE) break
  }
  return ok('memory', `${count} ${count === 1 ? 'memory' : 'memories'} of ${owners} ${owners === 1 ? 'owner' : 'owners'}`)
}
