/** Requests of the daemon to platforms and models, under its own name: some platforms refuse clients without a user agent. */

export const USER_AGENT = 'Sluice'

/** `fetch` with Sluice's user agent, unless the caller sets another one. */
export const outboundFetch: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))
  if (!headers.has('user-agent')) headers.set('user-agent', USER_AGENT)
  return fetch(input, { ...init, headers })
}
