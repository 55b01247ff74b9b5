/** Tracks how far an HTTP request of this process got, which tells whether the server may have executed a failed request. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe } from 'node:diagnostics_channel'

/** `unknown`: the client sent no request, or is not Node's `fetch`. `connecting`: no byte of the request was written yet. */
export type RequestProgress = 'unknown' | 'connecting' | 'written'

interface Tracked {
  progress: RequestProgress
}

const current = new AsyncLocalStorage<Tracked>()
const requests = new WeakMap<object, Tracked>()

/** Returns the request in an event of Node's `fetch`; see "Diagnostics Channel Support" in the documentation of undici. */
const requestIn = (message: unknown): object => (message as { readonly request: object }).request

subscribe('undici:request:create', (message) => {
  const tracked = current.getStore()
  if (!tracked) return
  if (tracked.progress === 'unknown') tracked.progress = 'connecting'
  requests.set(requestIn(message), tracked)
})
subscribe('undici:client:sendHeaders', (message) => {
  const tracked = requests.get(requestIn(message))
  if (tracked) tracked.progress = 'written'
})

/** Runs `send`, which makes one request with `fetch`. The second result is a function that returns the progress of that request. */
export function trackRequest<Result>(send: () => Promise<Result>): readonly [Promise<Result>, () => RequestProgress] {
  const tracked: Tracked = { progress: 'unknown' }
  return [current.run(tracked, send), () => tracked.progress]
}
