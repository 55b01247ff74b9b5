/** Voice calls through Twilio, Telnyx or Plivo; signed webhooks and media streams in, REST API out. See `README.md`. */
import { randomUUID } from 'node:crypto'
import { type Channel, defineFeature, type Host, type Parts, type SocketRoute } from '@sluice/sdk'
import { Calls } from './calls.ts'
import type { CallsOptions } from './calls-options.ts'
import { telnyx } from './command-provider.ts'
import { API_URLS, missingKeys, type VoiceCallConfig, voiceCallSection } from './config.ts'
import { plivo, twilio } from './form-provider.ts'
import { MARKUP } from './markup.ts'
import type { ProviderOptions } from './provider.ts'
import { callerOf, STREAM_PATH } from './telephony.ts'
import { NO_CALLS, voiceCallTool } from './tool.ts'
import { createWebhook } from './webhook.ts'

/** About twenty minutes of speech. A reply is not split, because its parts would interrupt each other. */
const TEXT_CHARS_MAX = 20_000
const PROVIDERS = { twilio, telnyx, plivo } as const

export default defineFeature({
  id: 'channel-voice-call',
  section: voiceCallSection,
  build: (host, config) =>
    config.enabled ? voiceCall(host, config) : { disabledReason: '`enabled` is false', tools: [voiceCallTool(NO_CALLS, true)] },
})

function voiceCall(host: Host, config: VoiceCallConfig): Parts {
  const { clock, log, keyValue } = host
  const provider = PROVIDERS[config.provider](providerOptions(host, config))
  const calls = new Calls({ config, provider, clock, log, keyValue, audio: () => audioOf(host), newToken: randomUUID })
  const missing = missingKeys(config)
  const webhook = createWebhook({
    provider: config.provider,
    baseUrl: config.webhook_base_url,
    authToken: config.auth_token.reveal().trim(),
    from: config.from_number,
    ...(config.public_key !== undefined && { publicKey: config.public_key }),
  })
  const channel: Channel = {
    name: 'voice_call',
    allow: config.allowed_numbers,
    normalise: callerOf,
    markup: MARKUP,
    limits: { text: TEXT_CHARS_MAX, unit: 'utf16', ...(config.provider === 'telnyx' && { dedupesClientIds: true as const }) },
    webhook: { ...webhook, answer: (raw) => calls.answer(raw) },
    send: (to, message, signal) => calls.send(to, message, signal),
    ...(config.audio === 'stream' && {
      listen(deliver, { report, signal }) {
        report.connected()
        return calls.listen(deliver, signal)
      },
    }),
    ...(missing !== undefined && { missingConfig: missing }),
  }
  const media: SocketRoute = {
    path: `${STREAM_PATH}/:token`,
    summary: 'The audio of a telephone call, which its provider connects',
    auth: 'open',
    open: ({ params }) => calls.openStream(params.token ?? ''),
  }
  return {
    channels: [channel],
    sockets: [media],
    tools: [voiceCallTool(calls, config.require_outbound_approval)],
    register: () => calls.open(),
    close: async () => calls.close(),
  }
}

const providerOptions = ({ fetch, clock }: Host, config: VoiceCallConfig): ProviderOptions => ({
  fetch,
  apiUrl: config.api_url ?? API_URLS[config.provider],
  baseUrl: config.webhook_base_url,
  accountId: config.account_id ?? '',
  authToken: config.auth_token,
  from: config.from_number,
  connectionId: config.connection_id ?? '',
  language: config.language,
  silenceSecs: config.silence_secs,
  nowMs: () => clock.nowMs(),
  ...(config.tts_voice !== undefined && { voice: config.tts_voice }),
})

function audioOf(host: Host): ReturnType<CallsOptions['audio']> {
  const [speak, transcribe] = [host.service('speak'), host.service('transcribe')]
  return speak && transcribe && { speak, transcribe, workspace: host.workspace }
}
