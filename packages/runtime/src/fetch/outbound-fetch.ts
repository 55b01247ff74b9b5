/**
 * Requests of the daemon to platforms and models: they carry its user agent, without which some platforms refuse a client,
 * and the span of the work under way as their parent (W3C Trace Context).
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { formatTraceparent, type Host, type Trace, type WithinTrace } from '@sluice/sdk'

export const USER_AGENT = 'Sluice'

/** `send` with Sluice's user agent, unless the caller sets another one. */
export const createOutboundFetch =
  (send: typeof fetch = (input, init) => fetch(input, init)): typeof fetch =>
  (input, init) => {
    const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))
    if (!headers.has('user-agent')) headers.set('user-agent', USER_AGENT)
    return send(input, { ...init, headers })
  }

/** Node's `fetch` with Sluice's user agent. */
export const outboundFetch: typeof fetch = createOutboundFetch()

export interface TraceScope {
  /** Runs work within a span. */
  readonly within: WithinTrace
  /** `fetcher` with the headers of the span that it is called in; a `traceparent` that the caller sets stays. */
  traced(fetcher: typeof fetch): typeof fetch
  /** As `traced`, for `Host.publicFetch`. */
  tracedPublic(fetcher: Host['publicFetch']): Host['publicFetch']
}

/** While `isTracing` returns false, work and requests are passed on unchanged. */
export function createTraceScope(isTracing: () => boolean): TraceScope {
  const current = new AsyncLocalStorage<Trace>()
  return {
    within: (trace, work) => (isTracing() ? current.run(trace, work) : work()),
    traced: (fetcher) => (input, init) => {
      const trace = current.getStore()
      if (!trace) return fetcher(input, init)
      const given = init?.headers ?? (input instanceof Request ? input.headers : undefined)
      return fetcher(input, { ...init, headers: withTrace(given, trace) })
    },
    tracedPublic: (fetcher) => (url, init) => {
      const trace = current.getStore()
      return trace ? fetcher(url, { ...init, headers: Object.fromEntries(withTrace(init?.headers, trace)) }) : fetcher(url, init)
    },
  }
}

function withTrace(given: RequestInit['headers'], { state, ...trace }: Trace): Headers {
  const headers = new Headers(given)
  if (headers.has('traceparent')) return headers
  headers.set('traceparent', formatTraceparent(trace))
  if (state !== undefined) headers.set('tracestate', state)
  return headers
}
