/** Which conversations a request lists or searches: its own or, for an operator, conversations of others. */
import { sessionsEnds } from '@sluice/runtime/conversations'
import { AppError, parseAgentKey, type SessionRow } from '@sluice/sdk'
import * as v from 'valibot'
import { bareSession, sessionNamespace } from '../auth/identity.ts'
import { filterText, flag } from './query.ts'
import type { Caller } from './session-access.ts'

export const scopeQuery = { all: v.exactOptional(flag), channel: filterText, sender: filterText }

/** The beginning and the end of the keys of the conversations, as `SessionStore.list` takes them. */
export interface Scope {
  readonly prefix?: string
  readonly suffix?: string
}

type ScopeQuery = v.InferOutput<v.ObjectSchema<typeof scopeQuery, undefined>>

const forbidden = (): AppError => new AppError('forbidden', 'Only an operator reads or erases the conversations of others.')

/** Throws `forbidden` if a client asks for sessions of others. */
export function scopeOf({ device, role }: Pick<Caller, 'device' | 'role'>, { all, channel, sender }: ScopeQuery): Scope {
  if (all !== 'true' && channel === undefined && sender === undefined) return { prefix: sessionNamespace(device) }
  if (role !== 'operator') throw forbidden()
  if (channel === undefined && sender === undefined) return {}
  if (channel === undefined) throw new AppError('invalid_request', 'sender goes with channel.')
  return sessionsEnds(channel, sender)
}

/** Whether a list of this scope has the session. */
export const isInScope = ({ prefix = '', suffix = '' }: Scope, id: string): boolean =>
  parseAgentKey(id).key.startsWith(prefix) && id.endsWith(suffix)

/** Returns the id under which the caller knows a session. On the control socket every id is whole; a device knows its own sessions by their names. */
export const shownId = ({ device, onControlSocket }: Pick<Caller, 'device' | 'onControlSocket'>, { id }: Pick<SessionRow, 'id'>): string =>
  (onControlSocket ? undefined : bareSession(device, id)) ?? id
