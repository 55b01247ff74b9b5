/** Signing in: by a link with a code in its fragment, or by a passkey. */
import { signal } from '@preact/signals'
import { ApiError, getOverview } from '../data/api.ts'
import { OVERVIEW, queries } from '../data/queries.ts'
import { session, signedIn, signedOut } from '../data/session.ts'
import { Mark } from '../ui/icon.tsx'
import { Problem } from '../ui/parts.tsx'

const problem = signal<unknown>(undefined)

/** Redeems the code of a link, or finds out whether this browser has a session. */
export async function signInByLink(): Promise<void> {
  try {
    queries.setQueryData(OVERVIEW, await getOverview())
    signedIn()
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 401)) problem.value = error
    signedOut()
  }
}

export async function signOut(): Promise<void> {
  queries.clear()
  session.value = 'out'
}

export function SignIn() {
  return (
    <main class="sign-in">
      <Mark />
      <h1 tabIndex={-1}>Sign in to Sluice</h1>
      <p>
        Run <code>sluice dashboard</code> on the machine of the gateway, and open the link that it prints. The link works once, for a
        minute.
      </p>
      {problem.value !== undefined && <Problem error={problem.value} retry={signInByLink} />}
    </main>
  )
}
