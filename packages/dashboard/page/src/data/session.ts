/** Whether this browser is signed in. The session itself is a cookie that scripts cannot read. */
import { signal } from '@preact/signals'

export type SessionState = 'unknown' | 'in' | 'out'

export const session = signal<SessionState>('unknown')

export const signedIn = (): void => {
  session.value = 'in'
}

export const signedOut = (): void => {
  session.value = 'out'
}
