/** Opaque client identities, minted here and nowhere else (§1, shared-state contract item 2). */
import { randomBytes } from 'node:crypto'
import { BoundedMap } from '@sluice/kit'
import type { ClientId } from '@sluice/sdk'

/** A proxy's connection may carry many devices; beyond this many, the first ones get a new identity when they come back. */
const PRINCIPALS_PER_CONNECTION_MAX = 64
const CALLERS_MAX = 10_000

export interface Clients {
  /** The client behind one connection acting as one device (null: no credential); the same as long as the connection lives. */
  of(connection: object, device: string | null): ClientId
  /** The client behind one durable identity, as in `ToolContext.caller`; the same while among the 10,000 first seen last. */
  ofCaller(caller: string): ClientId
}

const mint = (): ClientId => randomBytes(16).toString('hex') as ClientId

export function createClients(): Clients {
  const connections = new WeakMap<object, BoundedMap<string, ClientId>>()
  const callers = new BoundedMap<string, ClientId>(CALLERS_MAX)
  return {
    of(connection, device) {
      const principals = connections.get(connection) ?? new BoundedMap(PRINCIPALS_PER_CONNECTION_MAX)
      if (principals.size === 0) connections.set(connection, principals)
      return minted(principals, device ?? '')
    },
    ofCaller: (caller) => minted(callers, caller),
  }
}

function minted(ids: BoundedMap<string, ClientId>, key: string): ClientId {
  const known = ids.get(key)
  if (known) return known
  const fresh = mint()
  ids.set(key, fresh)
  return fresh
}
