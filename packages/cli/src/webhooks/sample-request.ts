/** Requests as a channel's provider sends them, and the same ones spoilt. */

import { withoutTrailing } from '@sluice/kit'
import { AppError, type Raw, type Sample, type SampleRequest, type Webhook } from '@sluice/sdk'

export interface WebhookRequest extends Pick<SampleRequest, 'unverifiable' | 'unanswerable'> {
  readonly url: URL
  /** With lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer>
}

/** Where a webhook is reached under a base address, which may have a path of its own. */
export const webhookUrl = (base: string, { path }: Pick<Webhook, 'path'>): string => `${withoutTrailing(base, '/')}${path}`

export function sampleRequest(webhook: Webhook, base: string, sample: Sample): WebhookRequest {
  const { headers, query = {}, body, ...known } = webhook.sample(sample)
  const url = new URL(webhookUrl(base, webhook))
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])
  return { ...known, url, headers: Object.fromEntries(lower), body: new TextEncoder().encode(body) }
}

/**
 * The request with one byte of its body changed, or of its token where the body proves nothing: whatever the webhook itself
 * refuses. Undefined where it refuses nothing, because it has no secret.
 */
export async function spoiltRequest(webhook: Webhook, request: WebhookRequest, atMs: number): Promise<WebhookRequest | undefined> {
  for (const spoilt of spoilings(request)) if (await isRefused(webhook, spoilt, atMs)) return spoilt
  return undefined
}

function* spoilings(request: WebhookRequest): Generator<WebhookRequest> {
  const body = Uint8Array.from(request.body)
  const middle = body.length >> 1
  body[middle] = (body[middle] ?? 0) ^ 1
  yield { ...request, body }
  for (const [name, value] of Object.entries(request.headers)) {
    if (!name.startsWith('content-')) yield { ...request, headers: { ...request.headers, [name]: otherEnd(value) } }
  }
  for (const [name, value] of request.url.searchParams) {
    const url = new URL(request.url)
    url.searchParams.set(name, otherEnd(value))
    yield { ...request, url }
  }
}

const otherEnd = (value: string): string => `${value.slice(0, -1)}${value.endsWith('0') ? '1' : '0'}`

async function isRefused(webhook: Webhook, { url, headers, body }: WebhookRequest, receivedAtMs: number): Promise<boolean> {
  const raw: Raw = { headers, url, body, receivedAtMs }
  try {
    await webhook.verify(raw)
    return false
  } catch (error) {
    if (error instanceof AppError && error.code === 'unauthorized') return true
    throw error
  }
}
