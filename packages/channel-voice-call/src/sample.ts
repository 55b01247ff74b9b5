/** Requests as the providers send them, for operators who try a set-up. */
import type { Sample, SampleRequest } from '@sluice/sdk/webhook'
import { plivoSignature } from './plivo.ts'
import { formOf, stepUrl, type VoiceWebhookOptions } from './telephony.ts'
import { telnyxState } from './telnyx.ts'
import { twilioSignature } from './twilio.ts'

/** The call is invented, so that no reply can be spoken in it. */
export function sampleOf(sample: Sample, options: VoiceWebhookOptions): SampleRequest {
  return options.provider === 'telnyx' ? telnyxSample(sample, options) : formSample(sample, options)
}

function formSample({ id, ignored, sender, text, to }: Sample, { authToken, baseUrl, from, provider }: VoiceWebhookOptions): SampleRequest {
  const isTwilio = provider === 'twilio'
  const form = new URLSearchParams({
    [isTwilio ? 'CallSid' : 'CallUUID']: to ?? 'CA00000000000000000000000000000000',
    From: sender,
    To: from,
    Direction: 'inbound',
    CallStatus: ignored ? 'completed' : 'in-progress',
    ...(!ignored && { [isTwilio ? 'SpeechResult' : 'Speech']: text, Confidence: '0.9' }),
  })
  const query = { step: 'heard', n: id }
  const body = form.toString()
  const url = stepUrl(baseUrl, query)
  const nonce = '00000000000000000000'
  const signature = isTwilio
    ? { 'x-twilio-signature': twilioSignature(authToken, url, formOf(Buffer.from(body))) }
    : { 'x-plivo-signature-v3': plivoSignature(authToken, url, formOf(Buffer.from(body)), nonce), 'x-plivo-signature-v3-nonce': nonce }
  return { headers: { 'content-type': 'application/x-www-form-urlencoded', ...signature }, query, body, unanswerable: true }
}

/** Only Telnyx has the private key that signs its requests. */
function telnyxSample({ id, ignored, sender, text, to, atMs }: Sample, { from }: VoiceWebhookOptions): SampleRequest {
  const state = telnyxState({ remote: sender, local: from, direction: 'inbound' })
  const payload = {
    call_control_id: to ?? 'v3:00000000-0000-4000-8000-000000000000',
    client_state: state,
    ...(!ignored && { transcription_data: { confidence: 0.9, is_final: true, transcript: text } }),
  }
  const type = ignored ? 'call.playback.ended' : 'call.transcription'
  const data = { record_type: 'event', event_type: type, id, occurred_at: new Date(atMs).toISOString(), payload }
  const headers = { 'content-type': 'application/json', 'telnyx-timestamp': String(Math.floor(atMs / 1000)) }
  return { headers, body: JSON.stringify({ data }), unverifiable: true, unanswerable: true }
}
