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

/** The identity of the only device on a connection. With a map for each connection, an idle subscriber took 700 bytes more. */
interface OnlyDevice {
  readonly device: string
  readonly id: ClientId
}

export function createClients(): Clients {
  const connections = new WeakMap<object, OnlyDevice | BoundedMap<string, ClientId>>()
  const callers = new BoundedMap<string, ClientId>(CALLERS_MAX)
  return {
    of(connection, device) {
      const key = device ?? ''
      const known = connections.get(connection)
      if (!known) {
        const id = freshId()
        connections.set(connection, { device: key, id })
        return id
      }
      if (known instanceof BoundedMap) return identityIn(known, key)
      if (known.device === key) return known.id
      const devices = new BoundedMap<string, ClientId>(DEVICES_PER_CONNECTION_MAX)
      devices.set(known.device, known.id)
      connections.set(connection, devices)
      return identityIn(devices, key)
    },
    ofCaller: (caller) => identityIn(callers, caller),
  }
}

const freshId = (): ClientId => randomBytes(16).toString('hex') as ClientId

function identityIn(ids: BoundedMap<string, ClientId>, key: string): ClientId {
  const known = ids.get(key)
  if (known) return known
  const fresh = freshId()
  ids.set(key, fresh)
  return fresh
}
