/** What `sluice doctor` says about the agent's memory: how much there is, and what belongs to no client yet. */
import { type MemoryStore, UNOWNED_MEMORIES } from '@sluice/sdk'
import { type Check, ok, warn } from './check.ts'

export async function checkMemory(memory: Pick<MemoryStore, 'owners'>): Promise<Check> {
  const owners = await memory.owners()
  const unowned = owners.find(({ owner }) => owner === UNOWNED_MEMORIES)?.count ?? 0
  if (unowned > 0) {
    const detail = `memories of an earlier release that belong to no client, so that every client can recall them: ${unowned}`
    return warn('memory', detail, "give them an owner with 'sluice memory assign <owner>', or keep them for all with --shared")
  }
  const count = owners.reduce((sum, owner) => sum + owner.count, 0)
  return ok('memory', `${count} ${count === 1 ? 'memory' : 'memories'} of ${owners.length} ${owners.length === 1 ? 'owner' : 'owners'}`)
}
