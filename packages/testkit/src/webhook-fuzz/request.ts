/** A webhook request whose parts can be replaced one by one. */
import type { Raw } from '@sluice/sdk'

/** The parts of a request. */
export interface WebhookRequest {
  /** Values by lower-case name; repeated headers are joined with a comma, as Node does. */
  readonly headers: Readonly<Record<string, string>>
  /** The raw query after the question mark. */
  readonly query: string
  readonly body: Uint8Array
  /** The time of receipt in milliseconds since 1970. */
  readonly atMs: number
}

/** The `Raw` of a request; it parses the URL only if a check reads it. */
export class RawOf implements Raw {
  readonly headers: Raw['headers']
  readonly body: Uint8Array
  readonly receivedAtMs: number
  readonly #query: string

  constructor({ headers, query, body, atMs }: WebhookRequest) {
    this.headers = headers
    this.body = body
    this.receivedAtMs = atMs
    this.#query = query
  }

  get url(): URL {
    return urlOf(this.#query)
  }
}

/** The URL of a request with this query. */
export const urlOf = (query: string): URL => new URL(`http://localhost/webhook?${query}`)
