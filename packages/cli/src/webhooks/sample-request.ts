/** Makes requests as the platform of a channel sends them, and copies of them that the channel must refuse. */
import { withoutTrailing } from '@sluice/kit'
import { AppError, type Channel, type Raw, type Sample, type Webhook } from '@sluice/sdk'

export interface WebhookRequest {
  readonly url: URL
  /** With lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer>
  /** True: only the platform can sign such a request, so the channel must refuse this one. */
  readonly unverifiable?: true
  /** True: the conversation is invented, so no reply can arrive. */
  readonly unanswerable?: true
}

/** Reserved for examples: no subscriber has it. */
const EXAMPLE_NUMBER = '+12025550143'
const EXAMPLE_NAME = 'operator'

/** Returns the first sender of the allowlist. For a mail domain or an empty allowlist, returns an example in the form of the channel. */
export function defaultSender({ allow, normalise, matches }: Pick<Channel, 'allow' | 'normalise' | 'matches'>): string {
  const first = allow.find((entry) => entry !== '*')
  if (first !== undefined) return matches && !/[^@]@/.test(first) ? `${EXAMPLE_NAME}@${first.replace(/^@/, '')}` : first
  if (normalise?.('+1 (202) 555-0143') === EXAMPLE_NUMBER) return EXAMPLE_NUMBER
  return matches ? `${EXAMPLE_NAME}@example.com` : EXAMPLE_NAME
}

/** Returns the address of a webhook under a base address, which may have a path. */
export const webhookUrl = (base: string, { path }: Webhook): string => `${withoutTrailing(base, '/')}${path}`

/** Makes the request of a sample message, signed with the configured secret. */
export function sampleRequest(webhook: Webhook, base: string, sample: Sample): WebhookRequest {
  const { headers, query = {}, body, ...known } = webhook.sample(sample)
  const url = new URL(webhookUrl(base, webhook))
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  const lowerCase = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])
  return { ...known, url, headers: Object.fromEntries(lowerCase), body: new TextEncoder().encode(body) }
}

/**
 * Returns a copy that the webhook refuses, with one byte changed: of the body or, if the webhook does not verify the body, of a
 * token. Returns undefined if the webhook refuses no request, because it has no secret.
 */
export async function corruptRequest(webhook: Webhook, request: WebhookRequest, atMs: number): Promise<WebhookRequest | undefined> {
  for (const copy of corruptCopies(request)) if (await isRefused(webhook, copy, atMs)) return copy
  return undefined
}

function* corruptCopies(request: WebhookRequest): Generator<WebhookRequest> {
  const body = Uint8Array.from(request.body)
  const middle = body.length >> 1
  body[middle] = (body[middle] ?? 0) ^ 1
  yield { ...request, body }
  for (const [name, value] of Object.entries(request.headers)) {
    if (!name.startsWith('content-')) yield { ...request, headers: { ...request.headers, [name]: withOtherEnd(value) } }
  }
  for (const [name, value] of request.url.searchParams) {
    const url = new URL(request.url)
    url.searchParams.set(name, withOtherEnd(value))
    yield { ...request, url }
  }
}

const withOtherEnd = (value: string): string => `${value.slice(0, -1)}${value.endsWith('0') ? '1' : '0'}`

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
