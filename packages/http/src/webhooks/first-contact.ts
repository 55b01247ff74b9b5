/**
 * The first requests by which services check the address of a webhook before they send events to it. Each is answered for triggers with an
 * authentication of their own, and starts nothing.
 *
 * - HEAD: Trello. https://developer.atlassian.com/cloud/trello/guides/rest-api/webhooks/
 * - GET with a parameter that comes back: Dropbox, Meta, WebSub. https://www.dropbox.com/developers/reference/webhooks,
 *   https://developers.facebook.com/docs/graph-api/webhooks/getting-started, https://www.w3.org/TR/websub/#hub-verifies-intent
 * - POST with a parameter that comes back: Microsoft Graph. https://learn.microsoft.com/graph/change-notifications-delivery-webhooks
 * - a signed body with a text that comes back: monday.com, Twitch. https://developer.monday.com/api-reference/reference/webhooks,
 *   https://dev.twitch.tv/docs/eventsub/handling-webhook-events/
 * - a signed body with a token that comes back with its HMAC: Zoom. https://developers.zoom.us/docs/api/webhooks/#validate-your-webhook-endpoint
 */
import { hmac } from '@sluice/sdk'
import { SECURITY_HEADERS } from '../request/respond.ts'

const GET_PARAMETERS = ['challenge', 'hub.challenge']
const POST_PARAMETER = 'validationToken'
const TWITCH_HEADER = 'twitch-eventsub-message-type'
const ECHO_CHARS_MAX = 2048

/** Text of a stranger comes back as plain text only, which no browser runs. */
const echo = (text: string): Response =>
  new Response(text, { headers: { ...SECURITY_HEADERS, 'content-type': 'text/plain; charset=utf-8' } })
const json = (value: unknown): Response =>
  new Response(JSON.stringify(value), { headers: { ...SECURITY_HEADERS, 'content-type': 'application/json; charset=utf-8' } })

/** Answers a first contact that has no body and needs no proof; undefined for any other request. */
export function answerUnprovenContact({ method, url }: Pick<Request, 'method' | 'url'>): Response | undefined {
  if (method === 'HEAD') return new Response(null, { headers: SECURITY_HEADERS })
  const { searchParams } = new URL(url)
  const given = (method === 'GET' ? GET_PARAMETERS : [POST_PARAMETER]).map((name) => searchParams.get(name)).find((value) => value)
  return given && given.length <= ECHO_CHARS_MAX ? echo(given) : undefined
}

/** Answers a first contact whose sender is proven; undefined for an event. `secret` returns the secret that the sender signs with. */
export function answerProvenContact(
  payload: string | null,
  headers: Pick<Headers, 'get'>,
  secret: () => string | undefined,
): Response | undefined {
  const body = objectOf(payload)
  const { challenge, event } = body
  if (typeof challenge === 'string') {
    if (headers.get(TWITCH_HEADER) === 'webhook_callback_verification') return echo(challenge)
    if (Object.keys(body).length === 1) return json({ challenge })
  }
  if (event !== 'endpoint.url_validation') return undefined
  const { plainToken } = objectOf(body.payload)
  const key = secret()
  if (typeof plainToken !== 'string' || key === undefined) return undefined
  return json({ plainToken, encryptedToken: hmac('sha256', key, plainToken).toString('hex') })
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null) return value as Readonly<Record<string, unknown>>
  if (typeof value !== 'string') return {}
  try {
    const parsed: unknown = JSON.parse(value)
    return typeof parsed === 'string' ? {} : objectOf(parsed)
  } catch {
    return {}
  }
}
