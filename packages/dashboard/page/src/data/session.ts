/** Whether this browser is signed in, and as what. The session itself is a cookie that scripts cannot read. */
import { signal } from '@preact/signals'
import { BASE } from './base.ts'

export type SessionState = 'unknown' | 'in' | 'out'
export type Role = 'operator' | 'client'

/**
 * Remembers, without any secret, that this browser had a session: the page is then drawn before the gateway has answered. The gateway
 * reads it too, and sends the menu with the page. Cookies are shared by all ports of a host, so its name has the port.
 */
const HINT = `sluice_role_${location.port || (location.protocol === 'https:' ? '443' : '80')}`
const YEAR_SECS = 31_536_000

const hint = (): string | undefined =>
  document.cookie
    .split('; ')
    .find((cookie) => cookie.startsWith(`${HINT}=`))
    ?.slice(HINT.length + 1)

function remember(value: Role | undefined): void {
  if (hint() === value) return
  // biome-ignore lint/suspicious/noDocumentCookie: other browsers than Chromium have no cookie store without TLS.
  document.cookie = `${HINT}=${value ?? ''}; path=${BASE.pathname}; max-age=${value === undefined ? 0 : YEAR_SECS}; samesite=strict`
}

const before = location.hash.startsWith('#sign-in=') ? undefined : hint()

export const session = signal<SessionState>(before === undefined ? 'unknown' : 'in')
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
