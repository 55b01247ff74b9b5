/** Opaque identities of clients; only this file makes them. */
import { randomBytes } from 'node:crypto'
import { BoundedMap } from '@sluice/kit'
import type { ClientId } from '@sluice/sdk'

/** The connection of a proxy may carry many devices. Beyond this number, the oldest ones get a new identity with their next request. */
const DEVICES_PER_CONNECTION_MAX = 64
const CALLERS_MAX = 10_000

export interface Clients {
  /** The identity of one device on one connection (null: no credential); the same as long as the connection lives. */
  of(connection: object, device: string | null): ClientId
  /** The identity of a durable caller, as in `ToolContext.caller`; the same while the caller is among the 10,000 newest. */
  ofCaller(caller: string): ClientId
}

export function createClients(): Clients {
  const connections = new WeakMap<object, BoundedMap<string, ClientId>>()
  const callers = new BoundedMap<string, ClientId>(CALLERS_MAX)
  return {
    of(connection, device) {
      const devices = connections.get(connection) ?? new BoundedMap(DEVICES_PER_CONNECTION_MAX)
      if (devices.size === 0) connections.set(connection, devices)
      return identityIn(devices, device ?? '')
    },
    ofCaller: (caller) => identityIn(callers, caller),
  }
}

function identityIn(ids: BoundedMap<string, ClientId>, key: string): ClientId {
  const known = ids.get(key)
  if (known) return known
  const fresh = randomBytes(16).toString('hex') as ClientId
  ids.set(key, fresh)
  return fresh
}
