/** telegram: a bot that polls for what people write and press, and answers in their chats (§2.3). */
import { defineFeature } from '@sluice/sdk'
import { telegramSection } from './config.ts'
import { telegram } from './telegram.ts'

export default defineFeature({
  id: 'channel-telegram',
  section: telegramSection,
  build: (host, config) => (config.enabled ? { channels: [telegram(host, config)] } : { off: '`enabled` is false' }),
})
