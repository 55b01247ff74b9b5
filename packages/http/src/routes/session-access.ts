/** Which session a request means, and the record that an operator reads the conversation of another person. */
import { BoundedMap } from '@sluice/kit'
import type { Runtime } from '@sluice/runtime'
import { AppError, type Role, type RouteRequest } from '@sluice/sdk'
import { checkSessionName, ownerOf, ownerOfSession, storedSession } from '../auth/identity.ts'
import { recordAction } from '../request/record-action.ts'

/** The most messages of a session that one request reads. */
export const MESSAGES_MAX = 500

/** An operator who reads the same conversation again within this time adds no record: a page loads it again with each message. */
const READ_MS = 10 * 60_000
const READERS_MAX = 1000

/**
 * Records in the audit log that an operator reads the conversation of another client, before the conversation is sent. Peers of the control socket are
 * not recorded: they could read the database itself.
 */
export class Readers {
  readonly #runtime: Runtime
  readonly #readMs = new BoundedMap<string, number>(READERS_MAX)

  constructor(runtime: Runtime) {
    this.#runtime = runtime
  }

  async note({ by, device, onControlSocket }: Pick<RouteRequest, 'by' | 'device' | 'onControlSocket'>, session: string): Promise<void> {
    if (onControlSocket || ownerOfSession(session) === ownerOf(device)) return
    const key = `${by} ${session}`
    const atMs = this.#runtime.clock.nowMs()
    if (atMs - (this.#readMs.get(key) ?? Number.NEGATIVE_INFINITY) < READ_MS) return
    await recordAction(this.#runtime, 'conversation_read', by, { session })
    this.#readMs.set(key, atMs)
  }
}

export const unknownSession = (): AppError => new AppError('not_found', 'There is no such session')

export interface Caller {
  readonly device: string | null
  readonly onControlSocket: boolean
  readonly role: Role | null
}

/** Resolves the session in a path: its name in the caller's namespace or, for an operator, its stored id. */
export function storedOf({ device, role }: Pick<Caller, 'device' | 'role'>, { id = '' }: Readonly<Record<string, string>>): string {
  if (role === 'operator' && id.includes('/')) return id
  return storedSession(device, checkSessionName(id, 'A session id'))
}
