/** The webhooks of channels (§4.2): size, proof over raw bytes, parse, keep; in this order, the first that refuses answers. */

import type { Ingress } from '@sluice/delivery'
import { type IngressWatch, watchIngress } from '@sluice/delivery'
import { BoundedMap } from '@sluice/kit'
import type { Live, Runtime } from '@sluice/runtime'
import { AppError, type Channel, type Raw, type Trace, type Verified, type Webhook } from '@sluice/sdk'
import type { Endpoint } from './endpoint.ts'
import type { Gate, HttpContext } from './gate.ts'
import type { BodyRoom, IngressBudget } from './ingress-budget.ts'
import { checkNames } from './origin.ts'
import { BODY_BYTES_MAX, type BytesRoom, readBody, tooLarge } from './raw-body.ts'
import { JSON_HEADERS, withSecurityHeaders } from './security-headers.ts'

export interface ChannelWebhookOptions {
  readonly runtime: Pick<Runtime, 'clock' | 'log'>
  readonly live: Pick<Live, 'observe' | 'config' | 'traces'>
  readonly receive: Ingress['receive']
  readonly budget: IngressBudget
  /** True: whoever is not the provider can reach this address too, so that nothing is taken unproved unless `[gateway]` allows it. */
  readonly demandsProof: boolean
}

/** A request as it comes, whichever way it does. */
export interface WebhookPost {
  readonly headers: Raw['headers']
  /** With its query. */
  readonly url: string
  /** The address the client is counted under. */
  readonly peer: string
  /** Throws `too_large` as soon as there is more, and what `room` throws. */
  read(bytesMax: number, room: BytesRoom): Promise<Uint8Array>
  /** The span of the request, where somebody observes it. */
  readonly trace?: Trace | undefined
}

/** Resolves to what became of it, once what is for us is durable; throws `AppError` to refuse. */
export type Receiver = (post: WebhookPost) => Promise<Verdict>

type Verdict = 'kept' | 'duplicate' | 'denied' | 'ignored' | 'unauthorized' | 'refused'

const NOTICE_MS = 60_000
const REASONS_MAX = 100

export const RECEIVED = JSON.stringify({ status: 'ok' })

/** The endpoints of a channel with a webhook: the one that is posted to, and the provider's GET check where it has one. */
export function channelEndpoints(channel: Channel, options: ChannelWebhookOptions, gate: Gate): Endpoint[] {
  const { webhook } = channel
  if (!webhook) return []
  const { handshake, path } = webhook
  const receive = createReceiver(channel, webhook, options)
  const post: Endpoint = {
    doc: {
      method: 'POST',
      path,
      summary: `Messages of ${channel.name}, as the provider sends them`,
      auth: 'open',
      answers: { 200: { description: '`{"status":"ok"}`: what was for us is kept' } },
    },
    async serve(c, scope) {
      const post = postOf(c, gate.look(c).address)
      await receive(options.live.traces ? { ...post, trace: scope.trace } : post)
      return new Response(RECEIVED, { headers: JSON_HEADERS })
    },
  }
  if (!handshake) return [post]
  const get: Endpoint = {
    doc: {
      method: 'GET',
      path,
      summary: `The check ${channel.name} makes when the webhook is registered`,
      auth: 'open',
      mediaType: 'text/plain',
      answers: { 200: { description: 'The challenge' } },
    },
    serve: (c) => withSecurityHeaders(handshake.call(webhook, new URL(c.req.url))),
  }
  return [get, post]
}

const postOf = (c: HttpContext, peer: string): WebhookPost => ({
  peer,
  // Node joins what comes twice with a comma, and no signature has one.
  headers: (c.env?.incoming?.headers ?? Object.fromEntries(c.req.raw.headers)) as Raw['headers'],
  url: c.req.url,
  read: (bytesMax, room) => readBody(c, bytesMax, room),
})

export function createReceiver(channel: Channel, webhook: Webhook, options: ChannelWebhookOptions): Receiver {
  const { runtime, live, receive, budget, demandsProof } = options
  const bodyBytesMax = webhook.bodyBytesMax ?? BODY_BYTES_MAX
  const signed = webhook.unsigned === undefined
  const about = { channel: channel.name, signed }
  const watching = { clock: runtime.clock, traces: live.traces, observe: live.observe }

  /** Whoever posts rubbish all day is worth a line a minute. */
  const noticed = new BoundedMap<string, number>(REASONS_MAX)
  const notice = (reason: string): void => {
    const nowMs = runtime.clock.monotonicMs()
    if (nowMs - (noticed.get(reason) ?? Number.NEGATIVE_INFINITY) < NOTICE_MS) return
    noticed.set(reason, nowMs)
    runtime.log.warn('a webhook request was refused', { channel: channel.name, reason })
  }

  const verify = async (raw: Raw, watch: IngressWatch): Promise<Verified> => {
    try {
      return await webhook.verify(raw)
    } catch (error) {
      if (error instanceof AppError && error.code === 'unauthorized') {
        watch.ended('unauthorized')
        notice(reasonOf(error))
      }
      throw error
    }
  }

  const take = async (post: WebhookPost, room: BodyRoom, watch: IngressWatch): Promise<Verdict> => {
    const body = await post.read(bodyBytesMax, room)
    room.complete()
    const raw = new RawRequest(post, body, runtime.clock.nowMs())
    const verified = await verify(raw, watch)
    const messages = await webhook.parse(raw)
    const received = { raw: raw.body, verified, receivedAtMs: raw.receivedAtMs, messages, trace: watch.trace }
    const { kept, duplicate, denied } = await receive(channel, received)
    const verdict = kept > 0 ? 'kept' : duplicate > 0 ? 'duplicate' : denied > 0 ? 'denied' : 'ignored'
    watch.ended(verdict)
    return verdict
  }

  return async (post) => {
    const declared = Number(post.headers['content-length'] ?? bodyBytesMax)
    if (declared > bodyBytesMax) throw tooLarge(bodyBytesMax)
    if (!signed && demandsProof && !live.config.allow_unsigned_webhooks) {
      throw new AppError(
        'unavailable',
        `${channel.name} is not served here: [channels_config.${channel.name}] ${webhook.unsigned} is not set, and the address is not loopback`,
      )
    }
    // Providers send no Origin: where nothing else proves the request, it must not come from a web page, under no name at all.
    if (!signed && post.headers.origin !== undefined) checkNames({ get: (name) => post.headers[name] ?? null }, live.config)
    const room = budget.open(channel.name, post.peer)
    const watch = watchIngress(watching, about, post.trace)
    try {
      return await take(post, room, watch)
    } catch (error) {
      if (error instanceof AppError && error.code === 'unavailable') watch.ended('refused')
      throw error
    } finally {
      room.release()
    }
  }
}

const reasonOf = ({ cause, message }: AppError): string => (typeof cause === 'string' ? cause : message)

/** The URL is parsed only for channels that look at it. */
class RawRequest implements Raw {
  readonly headers: Raw['headers']
  readonly body: Uint8Array
  readonly receivedAtMs: number
  readonly #url: string

  constructor({ headers, url }: WebhookPost, body: Uint8Array, receivedAtMs: number) {
    this.headers = headers
    this.body = body
    this.receivedAtMs = receivedAtMs
    this.#url = url
  }

  get url(): URL {
    return new URL(this.#url, 'http://gateway')
  }
}
