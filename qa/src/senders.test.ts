/** The schemes of senders against the senders' own libraries, and against examples that they publish. */
import { createHmac } from 'node:crypto'
import { sign } from '@octokit/webhooks-methods'
import { SENDER_SCHEMES, type SenderName, verifyProof } from '@sluice/sdk'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import Stripe from 'stripe'
import { Webhook as SvixWebhook } from 'svix'
import { expect, test } from 'vitest'

const AT_MS = Date.UTC(2026, 0, 1)
const AT_SECS = AT_MS / 1000
const SECRET = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='
const BODY = '{"id":"evt_1","text":"café \\u00e9"}'

function check(
  name: SenderName,
  headers: Readonly<Record<string, string>>,
  { secret = SECRET, body = BODY, url = 'http://a/', atMs = AT_MS } = {},
) {
  const request = { headers, url, body: Buffer.from(body), receivedAtMs: atMs }
  expect(verifyProof(SENDER_SCHEMES[name], [secret], { ...request, body: Buffer.from(`${body} `) }).isValid).toBe(false)
  return verifyProof(SENDER_SCHEMES[name], [secret], request)
}

test('accepts what @octokit/webhooks-methods signs', async () => {
  const headers = { 'x-hub-signature-256': await sign(SECRET, BODY), 'x-github-delivery': 'd-1' }
  expect(check('github', headers)).toEqual({ isValid: true, deliveryId: 'd-1' })
})

test('accepts what the library of Stripe signs', async () => {
  const header = await Stripe.webhooks.generateTestHeaderStringAsync({ payload: BODY, secret: SECRET, timestamp: AT_SECS })
  expect(check('stripe', { 'stripe-signature': header })).toEqual({ isValid: true, deliveryId: 'evt_1' })
})

test('accepts what the library of Standard Webhooks signs', () => {
  const signature = new StandardWebhook(SECRET).sign('msg_1', new Date(AT_MS), BODY)
  const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': String(AT_SECS), 'webhook-signature': signature }
  expect(check('standard-webhooks', headers)).toEqual({ isValid: true, deliveryId: 'msg_1' })
})

test('accepts what the library of Svix signs', () => {
  const signature = new SvixWebhook(SECRET).sign('msg_1', new Date(AT_MS), BODY)
  const headers = { 'svix-id': 'msg_1', 'svix-timestamp': String(AT_SECS), 'svix-signature': signature }
  expect(check('svix', headers)).toEqual({ isValid: true, deliveryId: 'msg_1' })
})

// https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/
test('accepts the example of the documentation of Bitbucket', () => {
  const headers = { 'x-hub-signature': 'sha256=a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9', 'x-request-uuid': 'u-1' }
  const proof = check('atlassian', headers, { secret: "It's a Secret to Everybody", body: 'Hello World!' })
  expect(proof).toEqual({ isValid: true, deliveryId: 'u-1' })
})

// Each header is computed as the documentation of the sender shows it for Node.
const DOCUMENTED: readonly [SenderName, headers: (hmac: ReturnType<typeof createHmac>) => Record<string, string>, deliveryId: string][] = [
  // https://shopify.dev/docs/apps/build/webhooks/subscribe/https
  ['shopify', (hmac) => ({ 'shopify-hmac-sha256': hmac.digest('base64'), 'shopify-webhook-id': 'w-2' }), 'w-2'],
  ['shopify', (hmac) => ({ 'x-shopify-hmac-sha256': hmac.digest('base64'), 'x-shopify-webhook-id': 'w-1' }), 'w-1'],
  // https://linear.app/developers/webhooks
  ['linear', (hmac) => ({ 'linear-signature': hmac.digest('hex'), 'linear-delivery': 'l-1' }), 'l-1'],
  // https://docs.sentry.io/organization/integrations/integration-platform/webhooks/
  ['sentry', (hmac) => ({ 'sentry-hook-signature': hmac.digest('hex'), 'request-id': 's-1' }), 's-1'],
  // https://developer.pagerduty.com/docs/verifying-webhook-signatures
  ['pagerduty', (hmac) => ({ 'x-pagerduty-signature': `v1=${'0'.repeat(64)},v1=${hmac.digest('hex')}` }), 'p-1'],
]

test.each(DOCUMENTED)('accepts what the documentation of %s computes', (name, headersFor, deliveryId) => {
  const body = JSON.stringify({ event: { id: 'p-1' }, webhookTimestamp: AT_MS - 1000 })
  expect(check(name, headersFor(createHmac('sha256', SECRET).update(body)), { body })).toEqual({ isValid: true, deliveryId })
})
