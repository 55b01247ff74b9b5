/**
 * The first requests by which services check the address of a webhook before they send events to it.
 *
 * - `head`: Trello. https://developer.atlassian.com/cloud/trello/guides/rest-api/webhooks/
 * - `parameter`, which comes back. GET: Dropbox, Meta, WebSub. https://www.dropbox.com/developers/reference/webhooks,
 *   https://developers.facebook.com/docs/graph-api/webhooks/getting-started, https://www.w3.org/TR/websub/#hub-verifies-intent
 *   POST: Microsoft Graph. https://learn.microsoft.com/graph/change-notifications-delivery-webhooks
 * - `secret`, a header that comes back: Asana. https://developers.asana.com/docs/webhooks-guide
 * - `challenge`, a signed body. With a text that comes back: monday.com, Twitch.
 *   https://developer.monday.com/api-reference/reference/webhooks, https://dev.twitch.tv/docs/eventsub/handling-webhook-events/
 *   With a token that comes back with its HMAC: Zoom. https://developers.zoom.us/docs/api/webhooks/#validate-your-webhook-endpoint
 */
import { hmac } from '../values/hmac.ts'

/** The kinds of first requests, as the key `handshake` of a trigger names them. */
export const HANDSHAKES = ['head', 'parameter', 'secret', 'challenge'] as const
export type HandshakeName = (typeof HANDSHAKES)[number]

const GET_PARAMETERS = ['challenge', 'hub.challenge']
const POST_PARAMETER = 'validationToken'
const SECRET_HEADER = 'x-hook-secret'
const TWITCH_HEADER = 'twitch-eventsub-message-type'
const ECHO_CHARS_MAX = 2048
/** A secret without blanks and controls. */
const SECRET = /^[\x21-\x7e]{1,512}$/

/** Text of a stranger comes back as plain text only, which no browser runs. */
const echo = (text: string): Response => new Response(text, { headers: { 'content-type': 'text/plain; charset=utf-8' } })
const json = (value: unknown): Response =>
  new Response(JSON.stringify(value), { headers: { 'content-type': 'application/json; charset=utf-8' } })

export interface Contact {
  readonly method: string
  readonly url: URL
  readonly headers: Pick<Headers, 'get'>
}

/** Answers a first contact that needs no proof and whose body is not read; undefined for any other request. */
export function answerUnprovenContact({ method, url, headers }: Contact, answered: ReadonlySet<HandshakeName>): Response | undefined {
  if (method === 'HEAD' && answered.has('head')) return new Response(null)
  const secret = headers.get(SECRET_HEADER)
  if (method === 'POST' && answered.has('secret') && secret !== null && SECRET.test(secret))
    return new Response(null, { headers: { [SECRET_HEADER]: secret } })
  if (!answered.has('parameter')) return undefined
  const given = (method === 'GET' ? GET_PARAMETERS : [POST_PARAMETER]).map((name) => url.searchParams.get(name)).find((value) => value)
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
