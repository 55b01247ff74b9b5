/** textrelay: the platform's own headers and the Standard Webhooks headers, each with a timestamp valid for 300 s. */
import { bodyHmac } from '@sluice/sdk'
import type { Random } from '@sluice/testkit/random'
import { openWebhook } from '@sluice/testkit/webhook-fuzz/open-webhook'
import type { Scheme } from '@sluice/testkit/webhook-fuzz/scheme'
import { type Signature, signatureScheme } from '@sluice/testkit/webhook-fuzz/signature-scheme'
import feature from '../index.ts'

const LEGACY: Signature = {
  scheme: bodyHmac('x-webhook-signature', { payload: '{timestamp}.{body}', timestamp: { header: 'x-webhook-timestamp' } }),
  optionalPrefix: 'sha256=',
  secret: 'textrelay-signing-secret-01',
}
const STANDARD: Signature = {
  scheme: bodyHmac('webhook-signature', {
    encoding: 'base64',
    prefix: 'v1,',
    separator: ' ',
    payload: '{id}.{timestamp}.{body}',
    timestamp: { header: 'webhook-timestamp' },
    idHeaders: ['webhook-id'],
    key: 'base64',
  }),
  secret: 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=',
}

const open = ({ secret }: Signature) =>
  openWebhook(feature, { api_token: 'api-token', from_phone: '+15550001111', signing_secret: secret }).webhook

export const legacyScheme = (random: Random): Scheme => signatureScheme(open(LEGACY), LEGACY, random)
export const standardScheme = (random: Random): Scheme => signatureScheme(open(STANDARD), STANDARD, random)
