/** How senders of webhooks prove where a request comes from, as data. `webhook-proof.ts` signs and verifies with it. */
import type { HmacAlgorithm } from '../values/hmac.ts'
import type { HandshakeName } from './first-contact.ts'

/** All names of headers are in lower case. */
interface Delivery {
  /** The first requests that the sender makes, where they differ from `HANDSHAKES_ANSWERED`. */
  readonly handshakes?: readonly HandshakeName[]
  /** The headers that may name a delivery: the first one that a request has is its id. A repeated delivery has the same id. */
  readonly idHeaders?: readonly string[]
  /** The member of the JSON body that is the id of the delivery, with dots: `event.id`. Read if no header has the id. */
  readonly idMember?: string
  /** Further headers that are kept with the event, so that conditions and steps can read them. */
  readonly eventHeaders?: readonly string[]
  /** How the sender marks the event with which it tries an endpoint: a header, or a member of the JSON body with dots, and its value. */
  readonly testEvent?: { readonly header: string; readonly value: string } | { readonly member: string; readonly value: string }
}

/** An HMAC over parts of the request. */
export interface HmacScheme extends Delivery {
  readonly kind: 'hmac'
  /** The header with the signature. */
  readonly header: string
  /** Another name of the header, read when the request lacks the first one. */
  readonly otherHeader?: string
  readonly algorithm: HmacAlgorithm
  /** `base64url` is without padding. */
  readonly encoding: 'hex' | 'base64' | 'base64url'
  /** With `base64`, base64url without padding is taken too: documentation of senders says base64 for both. */
  readonly takesUrlForm?: true
  /** The text before each signature. */
  readonly prefix?: string
  /** The text between the items of the header, if it has several. Items without the prefix are skipped. */
  readonly separator?: string
  /**
   * The signed text with placeholders: `{body}` (the raw bytes), `{timestamp}`, `{id}` (the value of the first of `idHeaders`),
   * `{url}` (the whole address that the sender called), `{form}` (names and values of a form, sorted by name).
   */
  readonly payload: string
  /**
   * Where the time of the request is: Unix time in seconds or milliseconds, or a time of ISO 8601 with its zone. Absent: requests have no
   * time, and never expire.
   */
  readonly timestamp?:
    | { readonly header: string }
    /** The prefix of an item of the signature's header. */
    | { readonly item: string }
    /** A member of the JSON body, with dots. */
    | { readonly member: string }
  /** `base64`: the key is the decoded secret, which may have the prefix `whsec_`. Default: the text of the secret. */
  readonly key?: 'text' | 'base64'
  /** A request that asks whether the endpoint works: its JSON body has this `type`, and the answer is the member `answer`. */
  readonly handshake?: { readonly type: string; readonly answer: string }
}

/** A header that has the secret itself, with an optional prefix. */
export interface TokenScheme extends Delivery {
  readonly kind: 'token'
  readonly header: string
  readonly prefix?: string
}

/** HTTP Basic authentication: the secret is the password. */
export interface BasicScheme extends Delivery {
  readonly kind: 'basic'
  readonly username: string
}

/** A parameter of the query that has the secret itself. */
export interface QueryScheme extends Delivery {
  readonly kind: 'query'
  readonly parameter: string
}

export type WebhookScheme = HmacScheme | TokenScheme | BasicScheme | QueryScheme

/** The HMAC-SHA256 of the body, in hex, in one header. */
export const bodyHmac = (header: string, more: Partial<HmacScheme> = {}): HmacScheme => ({
  kind: 'hmac',
  header,
  algorithm: 'sha256',
  encoding: 'hex',
  payload: '{body}',
  ...more,
})

/** The schemes of senders, by the name that a trigger gives as `auth`. */
export const SENDER_SCHEMES = {
  github: bodyHmac('x-hub-signature-256', {
    prefix: 'sha256=',
    idHeaders: ['x-github-delivery'],
    eventHeaders: ['x-github-event'],
    testEvent: { header: 'x-github-event', value: 'ping' },
  }),
  gitlab: {
    kind: 'token',
    header: 'x-gitlab-token',
    // All deliveries that one event leads to share X-Gitlab-Event-UUID, so that it tells no repeat.
    idHeaders: ['idempotency-key'],
    eventHeaders: ['x-gitlab-event', 'x-gitlab-event-uuid'],
  },
  stripe: bodyHmac('stripe-signature', {
    prefix: 'v1=',
    separator: ',',
    payload: '{timestamp}.{body}',
    timestamp: { item: 't=' },
    idMember: 'id',
    // https://docs.stripe.com/api/v2/core/event-destinations/ping
    testEvent: { member: 'type', value: 'v2.core.event_destination.ping' },
  }),
  'standard-webhooks': bodyHmac('webhook-signature', {
    encoding: 'base64',
    prefix: 'v1,',
    separator: ' ',
    payload: '{id}.{timestamp}.{body}',
    timestamp: { header: 'webhook-timestamp' },
    idHeaders: ['webhook-id'],
    key: 'base64',
  }),
  svix: bodyHmac('svix-signature', {
    encoding: 'base64',
    prefix: 'v1,',
    separator: ' ',
    payload: '{id}.{timestamp}.{body}',
    timestamp: { header: 'svix-timestamp' },
    idHeaders: ['svix-id'],
    key: 'base64',
  }),
  slack: bodyHmac('x-slack-signature', {
    prefix: 'v0=',
    payload: 'v0:{timestamp}:{body}',
    timestamp: { header: 'x-slack-request-timestamp' },
    idMember: 'event_id',
    eventHeaders: ['x-slack-retry-num'],
    handshake: { type: 'url_verification', answer: 'challenge' },
  }),
  shopify: bodyHmac('x-shopify-hmac-sha256', {
    encoding: 'base64',
    // The names of Shopify's "events" have no X-.
    otherHeader: 'shopify-hmac-sha256',
    idHeaders: ['x-shopify-webhook-id', 'shopify-webhook-id'],
    eventHeaders: ['x-shopify-topic', 'x-shopify-shop-domain', 'shopify-topic', 'shopify-shop-domain'],
  }),
  linear: bodyHmac('linear-signature', {
    timestamp: { member: 'webhookTimestamp' },
    idHeaders: ['linear-delivery'],
    eventHeaders: ['linear-event'],
  }),
  sentry: bodyHmac('sentry-hook-signature', { idHeaders: ['request-id'], eventHeaders: ['sentry-hook-resource'] }),
  atlassian: bodyHmac('x-hub-signature', {
    prefix: 'sha256=',
    idHeaders: ['x-request-uuid', 'x-atlassian-webhook-identifier'],
    eventHeaders: ['x-event-key'],
    testEvent: { header: 'x-event-key', value: 'diagnostics:ping' },
  }),
  // The secret is in the answer to the request that creates the webhook.
  asana: bodyHmac('x-hook-signature', { handshakes: ['secret'] }),
  pagerduty: bodyHmac('x-pagerduty-signature', {
    prefix: 'v1=',
    separator: ',',
    idMember: 'event.id',
    testEvent: { member: 'event.event_type', value: 'pagey.ping' },
  }),
  twilio: bodyHmac('x-twilio-signature', {
    algorithm: 'sha1',
    encoding: 'base64',
    payload: '{url}{form}',
    idHeaders: ['i-twilio-idempotency-token'],
  }),
} as const satisfies Record<string, WebhookScheme>

export type SenderName = keyof typeof SENDER_SCHEMES

/** The authentication of a webhook trigger that brings its own, in place of a bearer token. */
export interface WebhookAuth {
  /** The value of `auth` in the trigger. */
  readonly name: string
  readonly scheme: WebhookScheme
  /** The names of the secrets in `[sop.secrets]`: each that is set is accepted. */
  readonly secrets: readonly string[]
  /** How far the time of a request may be away, in seconds. */
  readonly windowSecs: number
  /** The first requests that are answered. Without it, the scheme names them. */
  readonly handshakes?: readonly HandshakeName[]
}

/** The first requests that are answered unless a trigger or a sender names others. */
const HANDSHAKES_ANSWERED: readonly HandshakeName[] = ['head', 'parameter', 'challenge']

/** Returns the first requests that are answered on a path with these authentications. */
export const handshakesOf = (auths: readonly WebhookAuth[]): ReadonlySet<HandshakeName> =>
  new Set(auths.flatMap(({ handshakes, scheme }) => handshakes ?? scheme.handshakes ?? HANDSHAKES_ANSWERED))

/** Two triggers with the same key have the same authentication. */
export const authKey = (auth: WebhookAuth | undefined): string => (auth ? JSON.stringify(auth) : 'bearer')

/** Whether an event is the one with which its sender tries an endpoint. The names of headers are in lower case. */
export function isTestEvent(
  { testEvent }: WebhookScheme,
  { payload, headers = {} }: { readonly payload: string | null; readonly headers?: Readonly<Record<string, string>> },
): boolean {
  if (!testEvent) return false
  if ('header' in testEvent) return headers[testEvent.header] === testEvent.value
  let found: unknown
  try {
    found = JSON.parse(payload ?? 'null')
  } catch {
    return false
  }
  for (const name of testEvent.member.split('.'))
    found = typeof found === 'object' && found !== null && Object.hasOwn(found, name) ? (found as Record<string, unknown>)[name] : undefined
  return found === testEvent.value
}
