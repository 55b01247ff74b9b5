/** The span that asks for what is being done, so that requests to other programs name it as their parent (W3C Trace Context). */
import { AsyncLocalStorage } from 'node:async_hooks'
import { formatTraceparent, type Host, type Trace, type WithinTrace } from '@sluice/sdk'

export interface TraceScope {
  readonly within: WithinTrace
  /** The same, with the headers of the trace it is called in; headers the caller has set stay. */
  traced(fetcher: typeof fetch): typeof fetch
  tracedPublic(fetcher: Host['publicFetch']): Host['publicFetch']
}

/** Where nobody traces, work is run and requests are made as they are. */
export function createTraceScope(isTracing: () => boolean): TraceScope {
  const current = new AsyncLocalStorage<Trace>()
  const withTrace = (given: RequestInit['headers'], { state, ...trace }: Trace): Headers => {
    const headers = new Headers(given)
    if (headers.has('traceparent')) return headers
    headers.set('traceparent', formatTraceparent(trace))
    if (state !== undefined) headers.set('tracestate', state)
    return headers
  }
  return {
    within: (trace, work) => (isTracing() ? current.run(trace, work) : work()),
    traced: (fetcher) => (input, init) => {
      const trace = current.getStore()
      if (!trace) return fetcher(input, init)
      return fetcher(input, { ...init, headers: withTrace(init?.headers ?? (input instanceof Request ? input.headers : undefined), trace) })
    },
    tracedPublic: (fetcher) => (url, init) => {
      const trace = current.getStore()
      return trace ? fetcher(url, { ...init, headers: Object.fromEntries(withTrace(init?.headers, trace)) }) : fetcher(url, init)
    },
  }
}
