/** The routes of the webhooks of chat platforms. The first step that refuses answers. */

import type { Snapshot } from '@sluice/runtime'
import { AppError, type Channel, type Raw, type Webhook } from '@sluice/sdk'
import { limitDeclaredSize } from '../middleware/body.ts'
import { checkNames } from '../middleware/origin.ts'
import { readBody } from '../request/body.ts'
import type { BodyBudget } from '../request/body-budget.ts'
import { type Endpoint, headersOf, type Step, traceOf } from '../request/context.ts'
import { JSON_HEADERS, withSecurityHeaders } from '../request/respond.ts'
import type { AppParts, Intake } from '../server/app-parts.ts'
import { directWebhook } from '../webhooks/direct-webhook.ts'
import { RECEIVED, WebhookReceiver } from '../webhooks/webhook-receiver.ts'

/** The route that a platform posts to, and the route of its GET check if it makes one. */
export function channelEndpoints(channel: Channel, parts: AppParts): Endpoint[] {
  const { webhook } = channel
  const { intake } = parts
  if (!webhook || !intake) return []
  const { path, handshake } = webhook
  const receiver = new WebhookReceiver(channel, webhook, intake, parts)
  const post: Endpoint = {
    doc: {
      method: 'POST',
      path,
      summary: `Messages of ${channel.name}, as the platform sends them`,
      auth: 'open',
      answers: { 200: { description: '`{"status":"ok"}`: the messages are stored' } },
    },
    steps: [
      limitDeclaredSize(receiver.bodyBytesMax),
      ...(webhook.unsigned === undefined ? [] : [guardUnsigned(channel, webhook, intake, parts.snapshot)]),
      receiveMessages(receiver, parts.budget),
    ],
    // Unsigned requests pass further checks.
    ...(webhook.unsigned === undefined && { direct: directWebhook(receiver, parts) }),
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
    const watch = receiver.watch(() => traceOf(c))
    try {
      const body = await readBody(c, receiver.bodyBytesMax, room)
      room.complete()
      // Node joins a header that is sent twice with a comma, which no signature contains.
      const headers = (c.env?.incoming?.headers ?? Object.fromEntries(c.req.raw.headers)) as Raw['headers']
      const answer = await receiver.receive({ headers, body, url: c.req.url }, watch)
      return answer ? withSecurityHeaders(answer) : new Response(RECEIVED, { headers: JSON_HEADERS })
    } catch (error) {
      receiver.refused(error, watch)
      throw error
    } finally {
      room.release()
    }
  }
