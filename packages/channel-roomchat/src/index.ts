/** roomchat: signed bot webhooks in, signed bot calls out. */
import { defineFeature } from '@sluice/sdk'
import { roomchatSection } from './config.ts'
import { roomchat } from './roomchat.ts'

export default defineFeature({
  id: 'channel-roomchat',
  section: roomchatSection,
  build: (host, config) => (config.enabled ? { channels: [roomchat(host, config)] } : { off: '`enabled` is false' }),
})
