/** The webhooks of chat platforms: size, verification of the raw bytes, parsing, storing. The first step that refuses answers. */

import { type IngressWatch, watchIngress } from '@sluice/delivery'
import type { Runtime, Snapshot } from '@sluice/runtime'
import { AppError, type Channel, type Raw, type Verified, type Webhook } from '@sluice/sdk'
import type { AppParts, Intake } from '../app-parts.ts'
import { BODY_BYTES_MAX, type BodyRoom, readBody } from '../body.ts'
import type { BodyBudget } from '../body-budget.ts'
import { type Endpoint, type HttpContext, headersOf, type Step, traceOf } from '../context.ts'
import { limitDeclaredSize } from '../middleware/body.ts'
import { checkNames } from '../middleware/origin.ts'
import { RefusalLog } from '../refusal-log.ts'
import { JSON_HEADERS, withSecurityHeaders } from '../respond.ts'

const RECEIVED = JSON.stringify({ status: 'ok' })

/** The route that a platform posts to, and the route of its GET check if it makes one. */
export function channelEndpoints(channel: Channel, parts: AppParts): Endpoint[] {
  const { webhook } = channel
  const { intake } = parts
  if (!webhook || !intake) return []
  const { path, handshake } = webhook
  const post: Endpoint = {
    doc: {
      method: 'POST',
      path,
      summary: `Messages of ${channel.name}, as the platform sends them`,
      auth: 'open',
      answers: { 200: { description: '`{"status":"ok"}`: the messages are stored' } },
    },
    steps: [
      limitDeclaredSize(webhook.bodyBytesMax ?? BODY_BYTES_MAX),
      ...(webhook.unsigned === undefined ? [] : [guardUnsigned(channel, webhook, intake, parts.snapshot)]),
      receiveMessages(new WebhookReceiver(channel, webhook, intake, parts), parts.budget),
    ],
  }
  if (!handshake) return [post]
  const get: Endpoint = {
    doc: {
      method: 'GET',
      path,
      summary: `The check that ${channel.name} makes when the webhook is registered`,
      auth: 'open',
      mediaType: 'text/plain',
      answers: { 200: { description: 'The challenge' } },
    },
    steps: [async (c) => withSecurityHeaders(handshake.call(webhook, new URL(c.req.url)))],
  }
  return [get, post]
}

/**
 * Refuses an unsigned webhook with `unavailable` where other machines can reach it, unless `[gateway]` allows it, and with
 * `forbidden` if it comes from a web page: platforms send no `Origin`.
 */
function guardUnsigned({ name }: Channel, { unsigned }: Webhook, { refusesUnsigned }: Intake, { gateway }: Snapshot): Step {
  return (c, next) => {
    if (refusesUnsigned() && !gateway.allow_unsigned_webhooks) {
      throw new AppError(
        'unavailable',
        `${name} is not served here: [channels_config.${name}] ${unsigned} is not set, and the address is not loopback`,
      )
    }
    const headers = headersOf(c)
    if (headers.get('origin') !== null) checkNames(headers, gateway)
    return next()
  }
}

/** Answers 200 once the messages are durable, also if there were none or all were duplicates. */
const receiveMessages =
  (receiver: WebhookReceiver, budget: BodyBudget): Step =>
  async (c) => {
    const room = budget.open(receiver.channel.name, c.get('peer').address)
    try {
      const answer = await receiver.receive(c, room)
      return answer ? withSecurityHeaders(answer) : new Response(RECEIVED, { headers: JSON_HEADERS })
    } finally {
      room.release()
    }
  }

/** Verifies, parses and hands over the requests to one webhook. */
class WebhookReceiver {
  readonly channel: Channel
  readonly #webhook: Webhook
  readonly #intake: Intake
  readonly #runtime: Runtime
  readonly #snapshot: Snapshot
  readonly #bodyBytesMax: number
  readonly #refusals: RefusalLog

  constructor(channel: Channel, webhook: Webhook, intake: Intake, { runtime, snapshot }: AppParts) {
    this.channel = channel
    this.#webhook = webhook
    this.#intake = intake
    this.#runtime = runtime
    this.#snapshot = snapshot
    this.#refusals = new RefusalLog(runtime)
    this.#bodyBytesMax = webhook.bodyBytesMax ?? BODY_BYTES_MAX
  }

  /** Resolves to the channel's own answer; undefined for the usual one. Throws `AppError` to refuse. */
  async receive(c: HttpContext, room: BodyRoom): Promise<Response | undefined> {
    const { wantsTraces, observe } = this.#snapshot
    const about = { channel: this.channel.name, signed: this.#webhook.unsigned === undefined }
    const watch = watchIngress({ clock: this.#runtime.clock, traces: wantsTraces, observe }, about, wantsTraces ? traceOf(c) : undefined)
    try {
      const body = await readBody(c, this.#bodyBytesMax, room)
      room.complete()
      const raw = new RawRequest(c, body, this.#runtime.clock.nowMs())
      const verified = await this.#verify(raw, watch)
      watch.ended(await this.#take(raw, verified, watch))
      return await this.#webhook.answer?.(raw)
    } catch (error) {
      if (error instanceof AppError && error.code === 'unavailable') watch.ended('refused')
      throw error
    }
  }

  async #take(raw: Raw, verified: Verified, watch: IngressWatch): Promise<'kept' | 'duplicate' | 'denied' | 'ignored'> {
    const messages = await this.#webhook.parse(raw)
    const stored = this.#webhook.parsesBodyAlone ? raw.body : null
    const received = { raw: stored, verified, receivedAtMs: raw.receivedAtMs, messages, trace: watch.trace }
    const { kept, duplicate, denied } = await this.#intake.receive(this.channel, received)
    if (kept > 0) return 'kept'
    if (duplicate > 0) return 'duplicate'
    return denied > 0 ? 'denied' : 'ignored'
  }

  async #verify(raw: Raw, watch: IngressWatch): Promise<Verified> {
    try {
      return await this.#webhook.verify(raw)
    } catch (error) {
      if (error instanceof AppError && error.code === 'unauthorized') {
        watch.ended('unauthorized')
        this.#refusals.note({ channel: this.channel.name, reason: typeof error.cause === 'string' ? error.cause : error.message })
      }
      throw error
    }
  }
}

/** Parses the URL only for channels that read it. */
class RawRequest implements Raw {
  readonly headers: Raw['headers']
  readonly body: Uint8Array
  readonly receivedAtMs: number
  readonly #url: string

  constructor(c: HttpContext, body: Uint8Array, receivedAtMs: number) {
    // Node joins a header that is sent twice with a comma, which no signature contains.
    this.headers = (c.env?.incoming?.headers ?? Object.fromEntries(c.req.raw.headers)) as Raw['headers']
    this.body = body
    this.receivedAtMs = receivedAtMs
    this.#url = c.req.url
  }

  get url(): URL {
    return new URL(this.#url)
  }
}
