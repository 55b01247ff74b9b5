/** Whether this browser is signed in, and as what. The session itself is a cookie that scripts cannot read. */
import { signal } from '@preact/signals'

export type SessionState = 'unknown' | 'in' | 'out'
export type Role = 'operator' | 'client'

/** Remembers, without any secret, that this browser had a session: the page is then drawn before the gateway has answered. */
const HINT = 'sluice.role'

function hint(): string | null {
  try {
    return localStorage.getItem(HINT)
  } catch {
    return null
  }
}

function remember(value: Role | undefined): void {
  try {
    if (value === undefined) localStorage.removeItem(HINT)
    else localStorage.setItem(HINT, value)
  } catch {
    // A browser that keeps nothing draws the page a little later.
  }
}

const before = location.hash.startsWith('#sign-in=') ? null : hint()

export const session = signal<SessionState>(before === null ? 'unknown' : 'in')
/** A client sees only its own conversations and approvals. */
export const role = signal<Role>(before === 'client' ? 'client' : 'operator')

export function signedIn(as: Role): void {
  role.value = as
  session.value = 'in'
  remember(as)
}

export const signedOut = (): void => {
  session.value = 'out'
  remember(undefined)
}
