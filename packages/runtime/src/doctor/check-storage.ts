/** What `sluice doctor` says about the room the data takes, and what retention deletes. */

import type { OpenRuntime } from '../open-runtime.ts'
import { heldUntilMs, retentionOf } from '../retention.ts'
import { type Check, ok, warn } from './check.ts'

const MB = 1024 * 1024

export async function checkStorage({ store, clock, config }: Pick<OpenRuntime, 'store' | 'clock' | 'config'>): Promise<Check> {
  const nowMs = clock.nowMs()
  const usage = await store.usage()
  const retention = retentionOf(config(), nowMs)
  const { copies } = usage
  const copied = copies.length > 0 ? `; copies from before an upgrade: ${copies.join(', ')}` : ''
  const size = `${megabytes(usage.bytes)} MB in use of ${megabytes(retention.bytesMax)} MB${copied}`
  const heldMs = heldUntilMs(usage, nowMs)
  if (heldMs === undefined) return ok('storage', size)
  const { messages, replies, turns, approvals, runs, said, conversations } = await store.prunable(retention)
  const counts = { messages, replies, turns, approvals, runs, 'turns of conversations': said, conversations }
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

const megabytes = (bytes: number): string => (bytes / MB).toFixed(1)
