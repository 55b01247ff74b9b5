/** Owners and sessions: the name of a device in the store, and the namespace that keeps its sessions apart from other devices. */
import type { LimitedClient } from '@sluice/agent'
import type { People } from '@sluice/delivery'
import { AppError, agentKey, MAIN_AGENT, parseAgentKey, type Role, type Standing } from '@sluice/sdk'

const SESSION_NAME = /^[A-Za-z0-9._-]{1,128}$/

/** Throws `invalid_request` unless the name is 1 to 128 of `A-Z a-z 0-9 . _ -`. `field` names it in the error. */
export function checkSessionName(name: string, field: string): string {
  if (!SESSION_NAME.test(name)) throw new AppError('invalid_request', `${field} has 1 to 128 characters of A-Z a-z 0-9 . _ -`)
  return name
}

/** The owner of a device's turns and sessions; `local` while no pairing is required. */
export const ownerOf = (device: string | null): string => device ?? 'local'

/** The name of a device for people and tools: `ToolContext.caller` and the actor in the audit log. */
export const personOf = (device: string | null): string => (device === null ? ownerOf(device) : `device:${device}`)

/** The person of a request: the command line on the control socket, else the device. */
export const personOfRequest = ({
  device,
  onControlSocket,
}: {
  readonly device: string | null
  readonly onControlSocket: boolean
}): string => (onControlSocket ? 'cli' : personOf(device))

/** The standing of a caller: its role. A caller without a credential proves nothing. */
export const standingOf = (role: Role | null): Standing => role ?? 'unverified'

/** The principal of the turns of a caller. */
export const limitedClient = (person: string, role: Role | null): LimitedClient => ({ client: person, standing: standingOf(role) })

/** The principal of a caller with the person of its linked accounts, as they were last read: the caller's shares count for the person. */
export const countedClient = (people: Pick<People, 'principal'>, person: string, role: Role | null): LimitedClient =>
  people.principal(limitedClient(person, role))

/** The person of a decision in `Approval.by`, which always names a device, a channel or a command: `device:local` while no pairing is required. */
export const deciderOf = (by: string): string => (by === personOf(null) ? `device:${by}` : by)

/** The beginning of the key of every stored session of a device, after its agent. */
export const sessionNamespace = (device: string | null): string => `${ownerOf(device)}/`

/** The id under which a device's session with an agent is stored. */
export const storedSession = (device: string | null, name: string, agent = MAIN_AGENT): string =>
  agentKey(agent, sessionNamespace(device) + name)

/** The name that a device gave to its stored session with the main agent; undefined for any other session. */
export function bareSession(device: string | null, stored: string): string | undefined {
  const namespace = sessionNamespace(device)
  return stored.startsWith(namespace) ? stored.slice(namespace.length) : undefined
}

/** The owner of a stored session. */
export function ownerOfSession(stored: string): string {
  const { key } = parseAgentKey(stored)
  return key.slice(0, key.indexOf('/'))
}
