/** Whether this browser is signed in, and as what. The session itself is a cookie that scripts cannot read. */
import { signal } from '@preact/signals'

export type SessionState = 'unknown' | 'in' | 'out'
export type Role = 'operator' | 'client'

export const session = signal<SessionState>('unknown')
/** A client sees only its own conversations and approvals. */
export const role = signal<Role>('operator')

export function signedIn(as: Role): void {
  role.value = as
  session.value = 'in'
}

export const signedOut = (): void => {
  session.value = 'out'
}
