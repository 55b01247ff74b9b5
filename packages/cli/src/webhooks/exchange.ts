/** One request to a daemon, as a provider makes it: no redirect is followed, and whatever goes wrong is said in one sentence. */

import { readHead, signalScope } from '@sluice/kit'
import { AppError, ERRORS, errorText } from '@sluice/sdk'

export interface Exchange {
  readonly method: 'GET' | 'POST'
  readonly url: URL
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array<ArrayBuffer>
  readonly signal?: AbortSignal
}

export interface Answer {
  readonly status: number
  /** At most `ANSWER_BYTES_MAX` bytes of it. */
  readonly text: string
  readonly tookMs: number
  /** Of a redirect. */
  readonly location: string | null
}

/** Providers wait about as long. */
const ANSWER_MS_MAX = 10_000
const ANSWER_BYTES_MAX = 65_536

/** Throws `unavailable` if no answer came, with the reason. */
export async function exchange({ method, url, headers = {}, body, signal }: Exchange): Promise<Answer> {
  using limit = signalScope([signal], ANSWER_MS_MAX)
  const startedAtMs = performance.now()
  try {
    const response = await fetch(url, {
      method,
      headers,
      body: body ?? null,
      redirect: 'manual',
      signal: limit.signal,
    })
    const text = new TextDecoder().decode(await readHead(response, ANSWER_BYTES_MAX))
    const tookMs = Math.round(performance.now() - startedAtMs)
    return { status: response.status, text, tookMs, location: response.headers.get('location') }
  } catch (cause) {
    throw new AppError(
      'unavailable',
      limit.timedOut ? `${url.host} did not answer within ${ANSWER_MS_MAX / 1000} s` : explainNoAnswer(url, cause),
      {
        cause,
      },
    )
  }
}

/** What went wrong with an answer nobody wanted, for whoever set the way up. */
export function explainAnswer({ status, text, location }: Answer): string {
  const ours = ourError(text)
  if (status >= 300 && status < 400) return `it answers ${status}, a redirect to ${location ?? 'nowhere'}, which providers do not follow`
  if (status === 401 && ours)
    return 'it answers 401: the daemon there has another secret than this configuration, or one of the clocks is wrong'
  if (status === 401 || status === 403)
    return `it answers ${status} as Sluice never does: something in front of the daemon wants a password, or lets nobody through`
  if (status === 404 && ours) return `it answers 404: the daemon there does not serve this path (${ours})`
  if (ours) return `it answers ${status}: ${ours}`
  if (status === 502 || status === 503 || status === 504) return `it answers ${status}: a proxy on the way does not reach the daemon`
  return `it answers ${status} as Sluice never does: another server has this address or path`
}

/** The sentence of an error body of ours. */
function ourError(text: string): string | undefined {
  try {
    const { error, code } = JSON.parse(text) as Record<string, unknown>
    return typeof error === 'string' && typeof code === 'string' && Object.hasOwn(ERRORS, code) ? error : undefined
  } catch {
    return undefined
  }
}

/** True for our own answer to a request that proves nothing. */
export const isRefused = ({ status, text }: Answer): boolean => status === 401 && ourError(text) !== undefined

/** True for the body of a webhook that was taken. */
export function isTaken({ status, text }: Answer): boolean {
  try {
    return status === 200 && ['ok', 'degraded'].includes(String((JSON.parse(text) as Record<string, unknown> | null)?.status))
  } catch {
    return false
  }
}

/** Why there is no answer, from what `fetch` threw. */
export function explainNoAnswer({ host, hostname }: URL, error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `the name ${hostname} is not found in DNS (${code})`
  if (code === 'ECONNREFUSED') return `nothing listens on ${host}`
  if (/CERT|SSL|TLS|EPROTO|VERIFY/.test(code)) return `no TLS connection to ${host}: ${errorText(cause)} (${code})`
  if (code.startsWith('HPE_')) return `what listens on ${host} does not speak HTTP`
  return `the connection to ${host} broke (${code || errorText(cause)})`
}
