/** discord: the gateway connection in, the REST interface out. */
import { defineFeature } from '@sluice/sdk'
import { discordSection } from './config.ts'
import { discord } from './discord.ts'

export default defineFeature({
  id: 'channel-discord',
  section: discordSection,
  build: (host, config) => (config.enabled ? { channels: [discord(host, config)] } : { off: '`enabled` is false' }),
})
