/** The routes of the webhooks of chat platforms. */

import type { Channel, Raw } from '@sluice/sdk'
import { readBody } from '../request/body.ts'
import { type Endpoint, type Step, traceOf } from '../request/context.ts'
import { JSON_HEADERS, RECEIVED, withSecurityHeaders } from '../request/respond.ts'
import type { AppParts } from '../server/app-parts.ts'
import { directWebhook } from '../webhooks/direct-webhook.ts'
import { WebhookReceiver } from '../webhooks/webhook-receiver.ts'

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
    steps: [receive(receiver)],
    direct: directWebhook(receiver, path, parts),
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

/** Serves a request that another program passes on, or whose `Host` Node's adaptor has to judge. */
const receive =
  (receiver: WebhookReceiver): Step =>
  async (c) => {
    const answer = await receiver.receive({
      headers: (c.env?.incoming?.headers ?? Object.fromEntries(c.req.raw.headers)) as Raw['headers'],
      url: c.req.url,
      address: c.get('peer').address,
      get trace() {
        return traceOf(c)
      },
      readBody: (bytesMax, room) => readBody(c, bytesMax, room),
    })
    return answer ? withSecurityHeaders(answer) : new Response(RECEIVED, { headers: JSON_HEADERS })
  }
