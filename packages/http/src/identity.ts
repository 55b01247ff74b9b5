/** Owners and sessions: the name of a device in the store, and the namespace that keeps its sessions apart from other devices. */
import { AppError } from '@sluice/sdk'

const SESSION_NAME = /^[A-Za-z0-9._-]{1,128}$/

/** Throws `invalid_request` unless the name is 1 to 128 of `A-Z a-z 0-9 . _ -`. `field` names it in the error. */
export function checkSessionName(name: string, field: string): string {
  if (!SESSION_NAME.test(name)) throw new AppError('invalid_request', `${field} has 1 to 128 characters of A-Z a-z 0-9 . _ -`)
  return name
}

/** The owner of a device's turns and sessions; `local` while no pairing is required. */
export const ownerOf = (device: string | null): string => device ?? 'local'

/** The name of a device for people and tools: `ToolContext.caller`, `Approval.by` and the actor in the audit log. */
export const personOf = (device: string | null): string => (device === null ? ownerOf(device) : `device:${device}`)

/** The prefix of every stored session of a device. */
export const sessionNamespace = (device: string | null): string => `${ownerOf(device)}/`

/** The id under which a device's session is stored. */
export const storedSession = (device: string | null, name: string): string => sessionNamespace(device) + name

/** The name that a device gave to its stored session; undefined for a session of another owner. */
export function bareSession(device: string | null, stored: string): string | undefined {
  const namespace = sessionNamespace(device)
  return stored.startsWith(namespace) ? stored.slice(namespace.length) : undefined
}

/** The owner of a stored session. */
export const ownerOfSession = (stored: string): string => stored.slice(0, stored.indexOf('/'))
