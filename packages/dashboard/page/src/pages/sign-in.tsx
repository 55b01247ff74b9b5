/** Signing in: by a link with a code in its fragment, or by a passkey. */

import { signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { forget } from '../chat/outgoing.ts'
import { ApiError, answered, api, getOverview } from '../data/api.ts'
import { OVERVIEW, queries } from '../data/queries.ts'
import { session, signedIn, signedOut } from '../data/session.ts'
import { Mark } from '../ui/icon.tsx'
import { Problem } from '../ui/parts.tsx'

const CODE = '#sign-in='
const FORBIDDEN = 403
/** The session is renewed when the page has been open for so long, and then again and again. */
const RENEW_AFTER_MS = 10_000
const RENEW_EVERY_MS = 12 * 60 * 60 * 1000

const problem = signal<unknown>(undefined)

/** Redeems the code of a link if the address has one, and finds out who this browser is. */
export async function begin(isAgain = false): Promise<void> {
  problem.value = undefined
  if (location.hash.startsWith(CODE)) {
    const code = location.hash.slice(CODE.length)
    // The code leaves the address and the history before anything else can read it.
    history.replaceState(null, '', '#/')
    window.dispatchEvent(new HashChangeEvent('hashchange'))
    try {
      await answered(api.POST('/api/dashboard/sign-in', { body: { code } }))
    } catch (error) {
      problem.value = error
    }
  }
  try {
    await queries.fetchQuery({ queryKey: OVERVIEW, queryFn: ({ signal }) => getOverview(signal), retry: false })
    signedIn('operator')
    problem.value = undefined
  } catch (error) {
    if (error instanceof ApiError && error.status === FORBIDDEN) return signedIn('client')
    // The answer has deleted cookies that another server planted, so that the next request may have the right one alone.
    const hadMoreCookies = error instanceof ApiError && typeof error.fields.cookies === 'number'
    if (hadMoreCookies && !isAgain) return begin(true)
    if (error instanceof ApiError && error.status === 401 && !hadMoreCookies) return signedOut()
    problem.value ??= error
    if (hadMoreCookies) return signedOut()
    if (session.value === 'unknown') session.value = 'out'
  }
}

/** A link that is opened where the page is open already changes only the fragment of its address. */
window.addEventListener('hashchange', () => {
  if (location.hash.startsWith(CODE)) void begin()
})

/** Keeps the session of a page that stays open. */
export function keepSession(): () => void {
  const renew = () => void answered(api.POST('/api/dashboard/session')).catch(() => undefined)
  const first = setTimeout(renew, RENEW_AFTER_MS)
  const next = setInterval(renew, RENEW_EVERY_MS)
  return () => {
    clearTimeout(first)
    clearInterval(next)
  }
}

export async function signOut(): Promise<void> {
  await answered(api.DELETE('/api/dashboard/session')).catch(() => undefined)
  queries.clear()
  forget()
  signedOut()
}

async function signInByPasskey(): Promise<void> {
  problem.value = undefined
  try {
    const { challenge, public_key } = await answered(api.POST('/api/dashboard/passkey/start'))
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(public_key as unknown as PublicKeyCredentialRequestOptionsJSON)
    const credential = await navigator.credentials.get({ publicKey })
    if (!(credential instanceof PublicKeyCredential)) return
    await answered(api.POST('/api/dashboard/passkey/finish', { body: { challenge, ...credential.toJSON() } as never }))
    await begin()
  } catch (error) {
    problem.value = error
  }
}

export function SignIn() {
  const [hasPasskeys, setHasPasskeys] = useState(false)
  useEffect(() => {
    document.title = 'Sign in · Sluice'
    document.querySelector('h1')?.focus()
    answered(api.GET('/api/dashboard/sign-in')).then(
      ({ passkey }) => setHasPasskeys(passkey && 'PublicKeyCredential' in window),
      () => undefined,
    )
  }, [])
  return (
    <main class="sign-in">
      <Mark />
      <h1 tabIndex={-1}>Sign in to Sluice</h1>
      {problem.value !== undefined && <Problem error={problem.value} />}
      <p>Run this command on the machine of the gateway, and open the link that it prints. The link works once, for a minute.</p>
      <pre>sluice dashboard</pre>
      <p>
        In a clone without the installed command, it is <code>npm run -s sluice -- dashboard</code>.
      </p>
      {hasPasskeys && (
        <button type="button" class="primary" onClick={() => void signInByPasskey()}>
          Sign in with a passkey
        </button>
      )}
      <button type="button" onClick={() => void begin()}>
        Try again
      </button>
    </main>
  )
}
