/** The `voice-wake` channel: commands spoken into a local microphone after a wake word. See `README.md`. */
import { type Channel, defineFeature, type Host } from '@sluice/sdk'
import { type VoiceWakeConfig, voiceWakeSection } from './config.ts'
import { MARKUP } from './markup.ts'

/** The text of a reply goes nowhere, so it is never split. */
const TEXT_MAX = 1_000_000

export default defineFeature({
  id: 'channel-voice-wake',
  section: voiceWakeSection,
  build: (host, config) => (config.enabled ? { channels: [createVoiceWake(host, config)] } : { disabledReason: '`enabled` is false' }),
})

function createVoiceWake(host: Host, config: VoiceWakeConfig): Channel {
  return {
    name: 'voice_wake',
    // All people who can speak into the microphone are one sender.
    allow: ['voice_user'],
    async listen(deliver, context) {
      const { VoiceListener } = await import('./listener.ts')
      await new VoiceListener(host, config).listen(deliver, context)
    },
    markup: MARKUP,
    limits: { text: TEXT_MAX, unit: 'codepoint', dedupesClientIds: true },
    /** The channel only listens: a reply is kept in the session and shown nowhere else. */
    send: async (_to, { clientId }) => ({ id: clientId }),
  }
}
