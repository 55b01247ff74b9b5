/** Requests of the daemon to platforms and models, under its own name: some platforms refuse clients that do not say who they are. */

export const USER_AGENT = 'Sluice'

/** `fetch` with Sluice's user agent, unless the caller names another one. */
export const outboundFetch: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))
  if (!headers.has('user-agent')) headers.set('user-agent', USER_AGENT)
  return fetch(input, { ...init, headers })
}
