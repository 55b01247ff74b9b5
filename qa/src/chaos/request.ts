/** Requests to the daemon, and pauses between them. A daemon that dies does not answer; callers expect that. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { PostedRequest } from '@sluice/testkit/crash-kind'

export interface Posted {
  /** Undefined if there was no answer. */
  readonly status: number | undefined
  readonly retryAfter: string | null
  readonly tookMs: number
  readonly body: string
  /** The turn that the answer names in a header, as a duplicate does. */
  readonly turn: string | null
}

export interface AskOptions {
  readonly path: string
  /** Absent: a GET request. */
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}

export interface Answer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

const MS_MAX = 10_000

/** Posts a webhook request, like a platform, and measures the time until its answer. */
export async function post(url: string, { path, headers, body }: PostedRequest, signal?: AbortSignal, msMax = MS_MAX): Promise<Posted> {
  const limit = AbortSignal.timeout(msMax)
  const startMs = performance.now()
  const tookMs = () => performance.now() - startMs
  try {
    const response = await fetch(url + path, { method: 'POST', headers, body, signal: signal ? AbortSignal.any([signal, limit]) : limit })
    const text = await response.text()
    return {
      status: response.status,
      retryAfter: response.headers.get('retry-after'),
      tookMs: tookMs(),
      body: text,
      turn: response.headers.get('x-turn-id'),
    }
  } catch {
    return { status: undefined, retryAfter: null, tookMs: tookMs(), body: '', turn: null }
  }
}

/** Calls the JSON API, like a program. Resolves to undefined if there was no answer. */
export async function ask(url: string, { path, body, headers = {}, signal }: AskOptions): Promise<Answer | undefined> {
  try {
    const response = await fetch(url + path, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(MS_MAX)]),
      ...(body && { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers } }),
    })
    return { status: response.status, body: (await response.json()) as Answer['body'] }
  } catch {
    return undefined
  }
}

/** Sleeps. Ends early, without an error, when `signal` aborts. */
export const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  ms <= 0 ? Promise.resolve() : sleep(ms, undefined, { signal }).catch(() => undefined)
