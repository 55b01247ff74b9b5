/** Sends one request to a daemon as a platform does, without following redirects, and explains an unexpected outcome in one sentence. */
import { readHead, signalScope } from '@sluice/kit'
import { AppError, ERRORS, errorText, type Webhook } from '@sluice/sdk'

export interface Exchange {
  readonly method: 'GET' | 'POST'
  readonly url: URL
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array<ArrayBuffer>
  readonly signal?: AbortSignal
}

export type SentRequest = Omit<Exchange, 'signal'>

export interface Answer {
  readonly status: number
  /** The first 64 KiB of the body. */
  readonly text: string
  readonly tookMs: number
  /** The target of a redirect. */
  readonly location: string | null
}

/** Platforms wait for a similar time. */
const ANSWER_MS_MAX = 10_000
const ANSWER_BYTES_MAX = 65_536

/** Throws `unavailable` with the reason if no answer arrives within 10 seconds. */
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
    const reason = limit.timedOut ? `${url.host} did not answer within ${ANSWER_MS_MAX / 1000} s` : explainNoAnswer(url, cause)
    throw new AppError('unavailable', reason, { cause })
  }
}

/** Explains an unexpected answer to the operator who sets up the webhook. */
export function explainAnswer({ status, text, location }: Answer): string {
  const sluiceError = parseSluiceError(text)
  if (status >= 300 && status < 400) return `it answers ${status}, a redirect to ${location ?? 'nowhere'}, which platforms do not follow`
  if (status === 401 && sluiceError)
    return 'it answers 401: the daemon there has another secret than this configuration, or one of the clocks is wrong'
  if (status === 401 || status === 403)
    return `it answers ${status} in a form that Sluice does not use: something in front of the daemon demands a password, or blocks the request`
  if (status === 404 && sluiceError) return `it answers 404: the daemon there does not serve this path (${sluiceError})`
  if (sluiceError) return `it answers ${status}: ${sluiceError}`
  if (status === 502 || status === 503 || status === 504) return `it answers ${status}: a proxy on the way does not reach the daemon`
  return `it answers ${status} in a form that Sluice does not use: another server has this address or path`
}

/** Returns the sentence of an error body of Sluice; undefined for any other body. */
function parseSluiceError(text: string): string | undefined {
  try {
    const { error, code } = JSON.parse(text) as Record<string, unknown>
    return typeof error === 'string' && typeof code === 'string' && Object.hasOwn(ERRORS, code) ? error : undefined
  } catch {
    return undefined
  }
}

/** Returns true for the answer of Sluice to a request that is not verified. */
export const isRefused = ({ status, text }: Answer): boolean => status === 401 && parseSluiceError(text) !== undefined

/** Returns true for the answer of Sluice to an accepted request, which is the webhook's own where its platform expects another one. */
export async function isAccepted({ status, text }: Answer, webhook: Webhook, request: SentRequest): Promise<boolean> {
  const { url, headers = {}, body = new Uint8Array() } = request
  try {
    const own = await webhook.answer?.({ headers, url, body, receivedAtMs: Date.now() })
    if (own) return status === own.status && text === (await own.text())
    return status === 200 && ['ok', 'degraded'].includes(String((JSON.parse(text) as Record<string, unknown> | null)?.status))
  } catch {
    return false
  }
}

/** Explains an error of `fetch`. */
export function explainNoAnswer({ host, hostname }: URL, error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `the name ${hostname} is not found in DNS (${code})`
  if (code === 'ECONNREFUSED') return `nothing listens on ${host}`
  if (/CERT|SSL|TLS|EPROTO|VERIFY/.test(code)) return `no TLS connection to ${host}: ${errorText(cause)} (${code})`
  if (code.startsWith('HPE_')) return `what listens on ${host} does not speak HTTP`
  return `the connection to ${host} broke (${code || errorText(cause)})`
}
