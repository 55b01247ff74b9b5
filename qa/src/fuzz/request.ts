/** A webhook request as a mutation sees it: every part can be replaced by itself. */
import type { Raw } from '@sluice/sdk'

export interface WebhookRequest {
  /** Lower-case names; a name that comes twice has its values joined with a comma, as Node does. */
  readonly headers: Readonly<Record<string, string>>
  /** Behind the question mark, as it came. */
  readonly query: string
  readonly body: Uint8Array
  /** When it is received. */
  readonly atMs: number
}

/** The URL is made only for who looks at it. */
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

export const urlOf = (query: string): URL => new URL(`http://localhost/webhook?${query}`)
