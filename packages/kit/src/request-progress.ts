/** How far an HTTP request of this process got, as far as its client says: decides whether a failure may have been done. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe } from 'node:diagnostics_channel'

/** `unknown`: the client never began a request, or is not Node's `fetch`. `connecting`: no byte of it was written yet. */
export type RequestProgress = 'unknown' | 'connecting' | 'written'

interface Tracked {
  progress: RequestProgress
}

const current = new AsyncLocalStorage<Tracked>()
const requests = new WeakMap<object, Tracked>()

/** What Node's `fetch` publishes; see "Diagnostics Channel Support" of undici. */
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

/** Runs `send`, which makes one request with `fetch`. The second result tells how far that request is by now. */
export function trackRequest<Result>(send: () => Promise<Result>): readonly [Promise<Result>, () => RequestProgress] {
  const tracked: Tracked = { progress: 'unknown' }
  return [current.run(tracked, send), () => tracked.progress]
}
