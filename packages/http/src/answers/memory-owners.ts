/** The owners of memories, by the names that operators use for them. */
import { AppError, parseAgentKey, SHARED_MEMORIES, type Store, UNOWNED_MEMORIES } from '@sluice/sdk'

/** The two owners that are not clients, by their names. */
const SPECIAL_OWNERS: Readonly<Record<string, string>> = { shared: SHARED_MEMORIES, unowned: UNOWNED_MEMORIES }
/** The owners that are clients. */
const CLIENT = /^(?:cli|local|(?:device|sop):.+|channel:[^/]+\/[^/]+\/[^/]+)$/s
const OWNER_FORMS =
  'device:<id>, channel:<channel>/<account>/<sender>, sop:<name>, cli, local, shared or unowned; a client of another agent begins with agent:<name>/'

/** Returns the stored form of an owner. Throws `invalid_request`, naming `field`, for a text that cannot be an owner. */
export function parseOwner(field: string, name: string): string {
  const owner = Object.hasOwn(SPECIAL_OWNERS, name) ? SPECIAL_OWNERS[name] : undefined
  if (owner !== undefined) return owner
  if (CLIENT.test(parseAgentKey(name).key)) return name
  throw new AppError('invalid_request', `${field} must be ${OWNER_FORMS}; got '${name}'`)
}

/** Returns the name of a stored owner. */
export const ownerName = (owner: string): string => Object.entries(SPECIAL_OWNERS).find(([, value]) => value === owner)?.[0] ?? owner

/** Throws `not_found` for a device that is not paired: no client could recall memories given to it. */
export async function requirePaired({ devices }: Store, owner: string): Promise<string> {
  const { key } = parseAgentKey(owner)
  const id = key.startsWith('device:') ? key.slice('device:'.length) : undefined
  if (id === undefined || (await devices.find(id))) return owner
  throw new AppError('not_found', `There is no device '${id}'`)
}
