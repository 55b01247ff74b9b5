/** The ways in which the three providers sign their requests, for the fuzzer. The signatures are made without the code of the channel. */
import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { sha256Hex } from '@sluice/sdk'
import type { Random } from '@sluice/testkit/random'
import { openWebhook } from '@sluice/testkit/webhook-fuzz/open-webhook'
import { urlOf, type WebhookRequest } from '@sluice/testkit/webhook-fuzz/request'
import type { Scheme } from '@sluice/testkit/webhook-fuzz/scheme'
import { validBodies } from '@sluice/testkit/webhook-fuzz/valid-bodies'
import feature from '../index.ts'
import { AUTH_TOKEN } from './fake.ts'
import { telnyxHeaders } from './keys.ts'
import { BASE_URL, formSectionOf, sectionOf } from './section.ts'

const WINDOW_MS = 300_000
const NOWHERE = { url: 'http://127.0.0.1:9' }
/** The path of the fuzzer's requests. */
const CALLED = `${BASE_URL}/webhook`

export function telnyxScheme(random: Random): Scheme {
  const { webhook } = openWebhook(feature, sectionOf(NOWHERE))
  const stranger = generateKeyPairSync('ed25519').privateKey
  const timeOf = ({ headers }: WebhookRequest): string => headers['telnyx-timestamp']?.trim() ?? ''
  return {
    count: 100_000,
    webhook,
    coversBody: true,
    isTimed: true,
    valid: validBodies(webhook, random).map(({ body, atMs }) => ({ headers: { ...telnyxHeaders(body, atMs) }, query: '', body, atMs })),
    forge(request, random) {
      const bytes = Buffer.from(`${timeOf(request)}${random.pick(['|', '.', ''])}${Buffer.from(request.body).toString('latin1')}`, 'latin1')
      const signature = sign(null, bytes, stranger).toString('base64')
      return { ...request, headers: { ...request.headers, 'telnyx-signature-ed25519': signature } }
    },
    proofs(request) {
      const time = timeOf(request)
      if (!/^\d+$/.test(time) || Math.abs(request.atMs - Number(time) * 1000) > WINDOW_MS) return []
      return [`${Number(time)} ${request.headers['telnyx-signature-ed25519']?.trim()} ${sha256Hex(request.body)}`]
    },
  }
}

export const twilioScheme = (random: Random): Scheme =>
  formScheme('twilio', random, 'x-twilio-signature', ({ query, body }, key) =>
    createHmac('sha1', key)
      .update(`${CALLED}${urlOf(query).search}${fieldsOf(body)}`)
      .digest('base64'),
  )

export const plivoScheme = (random: Random): Scheme =>
  formScheme('plivo', random, 'x-plivo-signature-v3', ({ query, body, headers }, key) => {
    const fields = fieldsOf(body)
    const sorted = [...urlOf(query).searchParams].map(([name, value]) => `${name}=${value}`).toSorted()
    const separator = sorted.length > 0 && fields !== '' ? '.' : ''
    const asked = sorted.length > 0 || fields !== '' ? '?' : ''
    return createHmac('sha256', key)
      .update(`${CALLED}${asked}${sorted.join('&')}${separator}${fields}.${headers['x-plivo-signature-v3-nonce']?.trim()}`)
      .digest('base64')
  })

/**
 * The signature covers the fields of the form in their order, so bytes may move between a name and its value, and the query as a parser of
 * URLs reads it, without the white space that a request line cannot have.
 */
function formScheme(
  provider: 'twilio' | 'plivo',
  random: Random,
  header: string,
  signatureOf: (request: WebhookRequest, key: string) => string,
): Scheme {
  const { webhook } = openWebhook(feature, formSectionOf(provider, NOWHERE))
  const withSignature = (request: WebhookRequest, key: string): WebhookRequest => ({
    ...request,
    headers: { ...request.headers, [header]: signatureOf(request, key) },
  })
  return {
    count: 200_000,
    webhook,
    coversBody: true,
    hasMovableBytes: true,
    isTimed: false,
    valid: validBodies(webhook, random).map(({ id, body, atMs }) => {
      const nonce = provider === 'plivo' ? { 'x-plivo-signature-v3-nonce': Buffer.from(random.bytes(10)).toString('hex') } : {}
      return withSignature({ headers: nonce, query: `step=heard&n=${id}`, body, atMs }, AUTH_TOKEN)
    }),
    forge: (request, random) => withSignature(request, random.pick(['', 'secret', AUTH_TOKEN.slice(1), AUTH_TOKEN.toUpperCase()])),
    // Plivo sends a list of signatures while a token is replaced.
    proofs(request) {
      const signatures = (request.headers[header] ?? '').split(provider === 'plivo' ? ',' : '\n')
      return signatures.map((signature) => `${signature.trim()} ${signatureOf(request, '')}`)
    },
  }
}

function fieldsOf(body: Uint8Array): string {
  const fields = [...new URLSearchParams(new TextDecoder().decode(body))]
  const names = [...new Set(fields.map(([name]) => name))].toSorted()
  return names
    .flatMap((name) =>
      [...new Set(fields.filter(([other]) => other === name).map(([, value]) => value))].toSorted().map((value) => name + value),
    )
    .join('')
}
