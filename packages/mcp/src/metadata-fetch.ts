/** Requests for the authorization at a server. Most of their addresses are named by the server, so they reach nothing inside the network. */
import { readUpTo, signalScope } from '@sluice/kit'
import { AppError, type Host, withFullStop } from '@sluice/sdk'

const BYTES_MAX = 1024 * 1024
const TIMEOUT_MS = 30_000

export interface MetadataFetchOptions {
  /** The name of the server in the configuration. */
  readonly server: string
  /** URLs that the operator configured. Everything at their origins is requested directly. */
  readonly configured: readonly string[]
  readonly host: Pick<Host, 'fetch' | 'publicFetch'>
}

/**
 * Returns a `fetch` that follows no redirect to another origin and reads at most 1 MB. It rejects with `forbidden` for an address that
 * is not public, unless the operator configured its origin.
 */
export function metadataFetch({ server, configured, host }: MetadataFetchOptions): typeof fetch {
  const direct = new Set(configured.map((url) => new URL(url).origin))

  return async (input, init = {}) => {
    const url = new URL(input instanceof Request ? input.url : input)
    using scope = signalScope([init.signal ?? undefined], TIMEOUT_MS)
    const { signal } = scope
    const response = direct.has(url.origin)
      ? await host.fetch(url, { ...init, signal, redirect: 'manual' })
      : await publicly(url, init, signal)
    const body = await readUpTo(response, BYTES_MAX)
    if (!body) throw new AppError('too_large', `${url.host} answered with more than ${BYTES_MAX} bytes`)
    const { status, statusText, headers } = response
    const answer = new Response([204, 205, 304].includes(status) ? null : body, { status, statusText, headers })
    // The client resolves redirects against the address of the answer.
    return Object.defineProperty(answer, 'url', { value: response.url || url.href })
  }

  function publicly(url: URL, { method = 'GET', headers, body }: RequestInit, signal: AbortSignal): Promise<Response> {
    const request = {
      method,
      headers: Object.fromEntries(new Headers(headers)),
      ...(body !== undefined && body !== null && { body: String(body) }),
      signal,
      responseBytesMax: BYTES_MAX,
      admit: ({ origin, host: other }: URL) => {
        if (origin !== url.origin) throw new AppError('forbidden', `${url.host} redirects to ${other}, which is another origin`)
      },
    }
    return host.publicFetch(url.href, request).catch((cause: unknown) => {
      if (!(cause instanceof AppError) || cause.code !== 'forbidden') throw cause
      throw new AppError(
        'forbidden',
        `The MCP server '${server}' names ${url.origin} for its authorization: ${withFullStop(cause.message)} If that is its authorization server, set mcp.servers.${server}.oauth.issuer.`,
        { cause },
      )
    })
  }
}
