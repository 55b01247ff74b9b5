/** The section `[channels_config.voice_call]`. */
import { refineNumbers } from '@sluice/kit/phone-numbers'
import { httpUrl, secretText, whole } from '@sluice/sdk'
import * as v from 'valibot'

/** The REST API of each provider. */
export const API_URLS = {
  twilio: 'https://api.twilio.com/2010-04-01',
  telnyx: 'https://api.telnyx.com/v2',
  plivo: 'https://api.plivo.com/v1',
} as const

const NO_PRICE = 'must be the price of a minute, above 0, because max_usd_per_day is set'

const text = v.pipe(v.string(), v.minLength(1))

const schema = v.object({
  enabled: v.optional(v.pipe(v.boolean(), v.description('Whether calls are answered and placed')), false),
  provider: v.optional(v.pipe(v.picklist(['twilio', 'telnyx', 'plivo']), v.description('The telephony provider')), 'twilio'),
  account_id: v.optional(v.pipe(text, v.description('The account SID of Twilio, or the auth id of Plivo; Telnyx needs none'))),
  auth_token: v.pipe(
    secretText({ env: ['SVC_VOICE_CALL_AUTH_TOKEN'], envWins: true }),
    v.description('The auth token of the account, or the API key of Telnyx'),
  ),
  public_key: v.optional(v.pipe(text, v.description('The public key of the Telnyx account, which verifies its requests'))),
  connection_id: v.optional(v.pipe(text, v.description('The id of the Call Control application of Telnyx, which places calls'))),
  from_number: v.pipe(
    v.string(),
    v.regex(/^\+[1-9]\d{1,14}$/, 'must be a number such as +15550001111 (E.164)'),
    v.description('Our own number, such as +15550001111'),
  ),
  webhook_base_url: v.pipe(
    httpUrl(),
    v.transform((url) => url.replace(/\/$/, '')),
    v.description('The public https URL of this daemon without a path: the provider signs the URL that it calls'),
  ),
  allowed_numbers: v.optional(
    v.pipe(v.array(v.string()), v.description('Numbers that may call and be called; * allows every number, an empty list none')),
    [],
  ),
  audio: v.optional(
    v.pipe(
      v.picklist(['platform', 'stream']),
      v.description(
        'Who recognises and speaks: the provider, or Sluice with [transcription] and [speech], over a media stream that a caller can interrupt',
      ),
    ),
    'platform',
  ),
  require_outbound_approval: v.optional(
    v.pipe(v.boolean(), v.description('Whether a person approves each call before it is placed')),
    true,
  ),
  greeting: v.optional(v.pipe(text, v.description('What callers hear first')), 'Hello. How can I help you?'),
  silence_prompt: v.optional(v.pipe(text, v.description('What a silent caller hears')), 'Are you still there?'),
  not_understood: v.optional(
    v.pipe(
      v.string(),
      v.description('What a caller hears on a media stream whose words could not be recognised or kept; an empty text says nothing'),
    ),
    'Sorry, I could not understand that. Please say it again.',
  ),
  goodbye: v.optional(v.pipe(text, v.description('What a caller hears before the call is ended')), 'Goodbye.'),
  tts_voice: v.optional(v.pipe(text, v.description('The voice of the provider; the voice of [speech] has its own key'))),
  language: v.optional(v.pipe(text, v.description('The language of the provider’s voice and recognition, such as en-US')), 'en-US'),
  silence_secs: v.optional(
    v.pipe(whole(2, 60), v.description('A caller who is silent for this time is asked; after the second time the call ends')),
    10,
  ),
  energy_threshold: v.optional(
    v.pipe(v.number(), v.minValue(0.0001), v.maxValue(1), v.description('The loudness from which audio counts as speech, from 0 to 1')),
    0.01,
  ),
  pause_ms: v.optional(v.pipe(whole(200, 5000), v.description('The pause that ends what a caller says, on a media stream')), 800),
  ring_secs: v.optional(v.pipe(whole(5, 120), v.description('How long a call of ours rings')), 30),
  max_call_duration_secs: v.optional(v.pipe(whole(10, 14_400), v.description('A longer call is ended')), 3600),
  max_calls: v.optional(v.pipe(whole(1, 100), v.description('Calls at the same time; further callers hear that the line is busy')), 4),
  max_minutes_per_day: v.optional(
    v.pipe(whole(1, 100_000), v.description('Minutes of all calls in a day (UTC); then calls end and none begins')),
  ),
  usd_per_minute: v.optional(
    v.pipe(v.number(), v.minValue(0), v.maxValue(100), v.description('The price of a minute, for max_usd_per_day')),
    0,
  ),
  max_usd_per_day: v.optional(
    v.pipe(v.number(), v.minValue(0.01), v.description('Cost of all calls in a day (UTC); then calls end and none begins')),
  ),
  api_url: v.optional(v.pipe(httpUrl(), v.description('Base URL of the provider’s API; by default that of the provider'))),
})

export const voiceCallSection = {
  path: 'channels_config.voice_call',
  schema,
  async refine(value: VoiceCallConfig) {
    const allowed = await refineNumbers(value.allowed_numbers, { key: 'allowed_numbers', isId: () => false, ids: 'a telephone number' })
    const hasPrice = value.max_usd_per_day === undefined || value.usd_per_minute > 0
    return {
      value: { ...value, allowed_numbers: allowed.value },
      problems: hasPrice ? allowed.problems : [...allowed.problems, { path: ['usd_per_minute'], message: NO_PRICE }],
    }
  },
} as const

export type VoiceCallConfig = v.InferOutput<typeof schema>

/** Returns the keys that the provider needs and that are not set; undefined if none is missing. */
export function missingKeys({ provider, account_id, public_key, connection_id }: VoiceCallConfig): string | undefined {
  const needed = provider === 'telnyx' ? { public_key, connection_id } : { account_id }
  const missing = Object.entries(needed).flatMap(([key, value]) => (value === undefined ? [key] : []))
  return missing.length === 0 ? undefined : missing.join(' and ')
}
