/** Everything the gateway answers, in one shape: described for the document, served by one function. */
import { newTrace } from '@sluice/agent'
import type { HeaderReader } from '@sluice/runtime'
import { parseTraceparent, type Route, type Trace } from '@sluice/sdk'
import type { HttpContext } from './gate.ts'

/** What the OpenAPI document is made from. */
export interface EndpointDoc extends Omit<Route, 'handle'> {
  /** Request headers that mean something here, with what they mean. */
  readonly headers?: Readonly<Record<string, string>>
}

export interface Endpoint {
  readonly doc: EndpointDoc
  /** Throws or rejects with `AppError` to refuse. */
  serve(c: HttpContext, scope: RequestScope): Response | Promise<Response>
}

/** What is known of one request besides its context; made when asked for. */
export class RequestScope {
  readonly #headers: HeaderReader
  #trace: Trace | undefined

  constructor(headers: HeaderReader) {
    this.#headers = headers
  }

  /** The span of this request, in the trace its `traceparent` header names. */
  get trace(): Trace {
    this.#trace ??= newTrace(parseTraceparent(this.#headers.get('traceparent') ?? '', this.#headers.get('tracestate')))
    return this.#trace
  }
}
