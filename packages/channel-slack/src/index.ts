/** slack: a workspace; events and buttons over socket mode, answers by the Web API (§2.3, §4.2). */
import { defineFeature } from '@sluice/sdk'
import { slackSection } from './config.ts'
import { createSlack } from './slack.ts'

export default defineFeature({
  id: 'channel-slack',
  section: slackSection,
  build: (host, config) => (config.enabled ? { channels: [createSlack(host, config)] } : { off: '`enabled` is false' }),
})
