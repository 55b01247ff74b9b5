/** Signatures of QQ for the fuzzer and the vectors: Ed25519 over time and body. The key is made here again, so that no fault of the channel is repeated. */
import { createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { sha256Hex } from '@sluice/sdk'
import type { Random } from '@sluice/testkit/random'
import { openWebhook } from '@sluice/testkit/webhook-fuzz/open-webhook'
import type { WebhookRequest } from '@sluice/testkit/webhook-fuzz/request'
import type { Scheme } from '@sluice/testkit/webhook-fuzz/scheme'
import { validBodies } from '@sluice/testkit/webhook-fuzz/valid-bodies'
import feature from '../index.ts'
import { BOT } from './fake.ts'

export const SIGNATURE = 'x-signature-ed25519'
export const TIMESTAMP = 'x-signature-timestamp'
const WINDOW_MS = 300_000

/** The documentation repeats the secret until it has 32 characters or more, and takes the first 32. */
export function keyOf(secret: string): KeyObject {
  let seed = secret
  while (seed.length < 32) seed += seed
  const encoded = Buffer.concat([Buffer.from('MC4CAQAwBQYDK2VwBCIEIA==', 'base64'), Buffer.from(seed.slice(0, 32))]).toString('base64')
  return createPrivateKey(`-----BEGIN PRIVATE KEY-----\n${encoded}\n-----END PRIVATE KEY-----\n`)
}

export const signatureOf = (key: KeyObject, timestamp: string, body: string | Uint8Array): string =>
  sign(null, Buffer.concat([Buffer.from(timestamp), Buffer.from(body)]), key).toString('hex')

/** Costs more than an HMAC, so there are fewer mutations. */
const COUNT = 200_000

export function qqScheme(random: Random): Scheme {
  const { webhook } = openWebhook(feature, BOT)
  const key = keyOf(BOT.app_secret)
  const withSignature = (request: WebhookRequest, signature: string): WebhookRequest => ({
    ...request,
    headers: { ...request.headers, [SIGNATURE]: signature },
  })
  const timeIn = ({ headers }: WebhookRequest): string => headers[TIMESTAMP]?.trim() ?? ''
  return {
    count: COUNT,
    webhook,
    coversBody: true,
    isTimed: true,
    valid: validBodies(webhook, random).map(({ body, atMs }) => {
      const timestamp = String(Math.floor(atMs / 1000))
      return { headers: { [SIGNATURE]: signatureOf(key, timestamp, body), [TIMESTAMP]: timestamp }, query: '', body, atMs }
    }),
    forge(request, random) {
      const time = timeIn(request)
      if (random.chance(0.3)) return withSignature(request, signatureOf(keyOf(`${BOT.app_secret}x`), time, request.body))
      if (random.chance(0.3)) return withSignature(request, signatureOf(key, `${time}0`, request.body))
      if (random.chance(0.3)) return withSignature(request, signatureOf(key, '', request.body))
      return withSignature(request, Buffer.from(random.bytes(64)).toString('hex'))
    },
    proofs(request) {
      const time = timeIn(request)
      if (!/^\d{1,11}$/.test(time) || Math.abs(request.atMs - Number(time) * 1000) > WINDOW_MS) return []
      return [`${request.headers[SIGNATURE]?.trim().toLowerCase()} ${time} ${sha256Hex(request.body)}`]
    },
  }
}
