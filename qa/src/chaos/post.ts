/** Makes one request to the daemon, like a platform. */
import type { PostedRequest } from './kind.ts'

export interface Posted {
  /** Undefined if there was no answer. */
  readonly status: number | undefined
  readonly retryAfter: string | null
  readonly tookMs: number
}

const MS_MAX = 10_000

export async function post(url: string, { path, headers, body }: PostedRequest, signal?: AbortSignal): Promise<Posted> {
  const limit = AbortSignal.timeout(MS_MAX)
  const startMs = performance.now()
  const tookMs = () => performance.now() - startMs
  try {
    const response = await fetch(url + path, { method: 'POST', headers, body, signal: signal ? AbortSignal.any([signal, limit]) : limit })
    await response.arrayBuffer()
    return { status: response.status, retryAfter: response.headers.get('retry-after'), tookMs: tookMs() }
  } catch {
    return { status: undefined, retryAfter: null, tookMs: tookMs() }
  }
}
