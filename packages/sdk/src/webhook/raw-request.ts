/** Makes the request that the webhook of a channel verifies and parses, from the parts that every server has. */
import type { Raw } from '../channel/channel.ts'

/** The headers as the Fetch API or as Node gives them. */
export type GivenHeaders = Iterable<readonly [string, string]> | Readonly<Record<string, string | readonly string[] | undefined>>

export interface RequestParts {
  /** The whole URL or, as Node gives it, the path with its query. */
  readonly url: string
  readonly headers: GivenHeaders
  /** The bytes of the body as they arrived. A body that was parsed before cannot be verified. */
  readonly body: Uint8Array | ArrayBuffer | string
  /** When the request arrived, in milliseconds since 1970. */
  readonly receivedAtMs?: number
}

/**
 * Names of headers become lower case, and a header that came several times is joined with `, `. Throws `TypeError` for a body that is
 * no text and no bytes, such as the object that a JSON middleware makes.
 */
export function rawRequest({ url, headers, body, receivedAtMs = Date.now() }: RequestParts): Raw {
  return { url: new URL(url, 'http://localhost'), headers: Object.fromEntries(pairsOf(headers)), body: bytesOf(body), receivedAtMs }
}

function* pairsOf(headers: GivenHeaders): Generator<readonly [string, string]> {
  const pairs = Symbol.iterator in headers ? headers : Object.entries(headers)
  for (const [name, value] of pairs) {
    if (value !== undefined) yield [name.toLowerCase(), typeof value === 'string' ? value : value.join(', ')]
  }
}

function bytesOf(body: unknown): Uint8Array {
  if (typeof body === 'string') return new TextEncoder().encode(body)
  if (body instanceof ArrayBuffer) return new Uint8Array(body)
  if (body instanceof Uint8Array) return body
  throw new TypeError('A signature covers the bytes of the body: give them as they arrived, before any middleware parses them')
}
