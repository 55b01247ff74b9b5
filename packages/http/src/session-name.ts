/** Session names as clients know them, and sessions as they are kept: each device has a namespace of its own. */
import { AppError } from '@sluice/sdk'

const NAME = /^[A-Za-z0-9._-]{1,128}$/

/** Throws `invalid_request` for anything but 1 to 128 of `A-Z a-z 0-9 . _ -`. `what` names the field. */
export function checkSessionName(name: string, what: string): string {
  if (!NAME.test(name)) throw new AppError('invalid_request', `${what} has 1 to 128 characters of A-Z a-z 0-9 . _ -`)
  return name
}

/** Whose turns and sessions these are: a device's, or this machine's while no pairing is required. */
export const ownerOf = (device: string | null): string => device ?? 'local'

/** Who a device is, to people and to tools: `ToolContext.caller`, `Approval.by` and the actor in the audit log. */
export const personOf = (device: string | null): string => (device === null ? ownerOf(device) : `device:${device}`)

/** What every kept session of this device begins with. */
export const sessionNamespace = (device: string | null): string => `${ownerOf(device)}/`

export const storedSession = (device: string | null, name: string): string => sessionNamespace(device) + name

/** The name a device knows its own session by; undefined for a session of somebody else. */
export function bareSession(device: string | null, stored: string): string | undefined {
  const namespace = sessionNamespace(device)
  return stored.startsWith(namespace) ? stored.slice(namespace.length) : undefined
}

/** Who owns a kept session. */
export const ownerOfSession = (stored: string): string => stored.slice(0, stored.indexOf('/'))
