/** The webhook of voice calls: verifies and reads the requests of the three providers; see `docs/contract.md#signatures`. */
import type { Inbound, Raw, Sample, SampleRequest, Verified, Webhook } from '@sluice/sdk/webhook'
import { plivoRequests } from './plivo.ts'
import { sampleOf } from './sample.ts'
import { callerOf, type Requests, type VoiceWebhookOptions, WEBHOOK_PATH } from './telephony.ts'
import { telnyxRequests } from './telnyx.ts'
import { twilioRequests } from './twilio.ts'

export const REQUESTS = { twilio: twilioRequests, telnyx: telnyxRequests, plivo: plivoRequests } as const satisfies Record<
  VoiceWebhookOptions['provider'],
  Requests
>

/** The webhook of a provider, without the answers that direct a call. It needs no Sluice runtime. */
export function createWebhook(options: VoiceWebhookOptions): Webhook {
  return {
    path: WEBHOOK_PATH,
    registered: `${options.baseUrl}${WEBHOOK_PATH}`,
    verify: (raw) => verify(raw, options),
    parse: (raw) => parse(raw, options),
    sample: (sample: Sample): SampleRequest => sampleOf(sample, options),
  }
}

/** Throws `unauthorized` for a request that the provider has not signed. */
export const verify = (raw: Raw, options: VoiceWebhookOptions): Verified => REQUESTS[options.provider].verify(raw, options)

/** Returns what the person said, if the request reports it. */
export function parse(raw: Raw, { provider }: Pick<VoiceWebhookOptions, 'provider'>): Inbound[] {
  const event = REQUESTS[provider].event(raw)
  if (event.kind !== 'heard') return []
  const { id, text, call, remote, local } = event
  const sender = callerOf(remote)
  return [{ id, account: local, sender, to: { to: sender, more: { call } }, addressed: 'direct', text }]
}
