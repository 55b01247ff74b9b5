/** The section `[channels_config.webhook]`. */
import { HANDSHAKES, headerSecret, secretText } from '@sluice/sdk'
import * as v from 'valibot'

const schema = v.object({
  enabled: v.optional(v.pipe(v.boolean(), v.description('False keeps the section and disables the channel')), true),
  send_url: v.pipe(
    v.string(),
    v.url(),
    v.regex(/^https?:\/\/[^@#]+$/i, 'must be an http or https URL without user name or fragment'),
    v.description('Where replies are sent'),
  ),
  send_method: v.optional(v.pipe(v.picklist(['POST', 'PUT']), v.description('The method of the requests to send_url')), 'POST'),
  auth_header: v.optional(v.pipe(headerSecret(), v.description('The Authorization header of the requests to send_url, such as Bearer …'))),
  secret: v.optional(
    v.pipe(
      secretText(),
      v.description(
        'The secret that signs messages and replies: whsec_… for Standard Webhooks, any other text for X-Webhook-Signature; without it requests are not verified',
      ),
    ),
  ),
  handshake: v.optional(
    v.pipe(
      v.array(v.picklist(HANDSHAKES)),
      v.description(
        'The first requests that are answered, by which a service checks the address: head, parameter (?challenge=, ?validationToken=), secret (X-Hook-Secret), challenge (in a signed body)',
      ),
    ),
    [],
  ),
  receiver_deduplicates: v.optional(
    v.pipe(
      v.boolean(),
      v.description('True: the receiver ignores a repeated id, so that a reply is sent again when it is unknown whether it arrived'),
    ),
    false,
  ),
  allowed_senders: v.optional(
    v.pipe(v.array(v.string()), v.description('The senders that may write; * allows every sender, an empty list none')),
    [],
  ),
})

/** Standard Webhooks reads the rest of such a secret as base64. */
const STANDARD_SECRET = /^whsec_[A-Za-z0-9+/]{22,}={0,2}$/

export const webhookSection = {
  path: 'channels_config.webhook',
  schema,
  async refine(value: WebhookConfig) {
    const secret = value.secret?.reveal().trim() ?? ''
    const isBroken = secret.startsWith('whsec_') && !STANDARD_SECRET.test(secret)
    const problem = { path: ['secret'], message: 'must have at least 16 bytes in base64 after whsec_' }
    return { value, problems: isBroken ? [problem] : [] }
  },
} as const

export type WebhookConfig = v.InferOutput<typeof schema>
