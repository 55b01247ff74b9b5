/** One request to the push service of a browser (RFC 8030), and what its answer means. */

import { retryAfterSecs, signalScope } from '@sluice/kit'
import { errorText, type Host } from '@sluice/sdk'
import { encryptMessage } from './encrypt.ts'
import type { Subscription } from './subscriptions.ts'
import type { VapidKey } from './vapid.ts'

const TIMEOUT_MS = 30_000
const ANSWER_BYTES_MAX = 65_536

/** The texts of a notification, and the page that a click on it opens. The worker of the page reads it (worker-script.ts). */
export interface Shown {
  readonly title: string
  readonly body: string
  /** The place of the page, such as `#/approvals`. */
  readonly place: string
  /** A notification replaces the one before with the same tag. */
  readonly tag: string
}

export interface PushMessage {
  readonly shown: Shown
  /** How long the push service keeps it for a browser that is not reachable, in seconds. */
  readonly ttlSecs: number
  readonly urgency: 'normal' | 'high'
}

/**
 * `gone`: the subscription has ended. `retry`: the service did not take the message now; `afterMs` is the time that it asked for. `refused`:
 * it would refuse a repeat, too.
 */
export type PushOutcome =
  | { readonly kind: 'sent' }
  | { readonly kind: 'gone' }
  | { readonly kind: 'retry'; readonly afterMs: number; readonly reason: string }
  | { readonly kind: 'refused'; readonly reason: string }

export interface PushSender {
  readonly host: Pick<Host, 'publicFetch' | 'clock'>
  readonly contact: string
  key(): Promise<VapidKey>
}

/** Never throws. The address was given by a browser, so it must be public without exemption, and redirects are refused. */
export async function sendPush(sender: PushSender, to: Subscription, message: PushMessage, signal: AbortSignal): Promise<PushOutcome> {
  const { host, contact, key } = sender
  using limit = signalScope([signal], TIMEOUT_MS)
  const { endpoint } = to
  let isRedirected = false
  try {
    const authorization = (await key()).header(endpoint.origin, contact, host.clock.nowMs())
    const { status, headers, body } = await host.publicFetch(endpoint.href, {
      method: 'POST',
      headers: {
        authorization,
        'content-encoding': 'aes128gcm',
        'content-type': 'application/octet-stream',
        ttl: String(message.ttlSecs),
        urgency: message.urgency,
      },
      body: encryptMessage(Buffer.from(JSON.stringify(message.shown)), to),
      signal: limit.signal,
      responseBytesMax: ANSWER_BYTES_MAX,
      onlyPublic: true,
      admit(url) {
        isRedirected = url.href !== endpoint.href
        if (isRedirected) throw new Error('the push service redirects')
      },
    })
    await body?.cancel()
    return outcomeOf(status, headers, host.clock.nowMs())
  } catch (error) {
    if (isRedirected || isForbidden(error)) return { kind: 'refused', reason: errorText(error) }
    return { kind: 'retry', afterMs: 0, reason: errorText(error) }
  }
}

const isForbidden = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'forbidden'

function outcomeOf(status: number, headers: Headers, nowMs: number): PushOutcome {
  if (status >= 200 && status < 300) return { kind: 'sent' }
  if (status === 404 || status === 410) return { kind: 'gone' }
  const reason = `the push service answered with status ${status}`
  if (status === 429 || status >= 500) return { kind: 'retry', afterMs: (retryAfterSecs(headers, nowMs) ?? 0) * 1000, reason }
  return { kind: 'refused', reason }
}
