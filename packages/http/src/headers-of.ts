/** A request's headers, read where they are cheapest. */
import type { IncomingHttpHeaders } from 'node:http'
import type { HeaderReader } from '@sluice/runtime'
import type { HttpContext } from './gate.ts'

/** What node has parsed already; only without a socket is it the `Headers` of the request. */
export const headersOf = (c: HttpContext): HeaderReader => {
  const incoming = c.env?.incoming
  return incoming ? new ParsedHeaders(incoming.headers) : c.req.raw.headers
}

export class ParsedHeaders implements HeaderReader {
  readonly #headers: IncomingHttpHeaders

  constructor(headers: IncomingHttpHeaders) {
    this.#headers = headers
  }

  get(name: string): string | null {
    const value = this.#headers[name]
    return typeof value === 'string' ? value : null
  }
}
