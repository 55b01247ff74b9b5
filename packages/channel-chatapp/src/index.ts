/** chatapp, cloud mode: signed webhooks in, the cloud API out. Which mode is active, the section's keys decide (§2.3). */
import { defineFeature } from '@sluice/sdk'
import { chatapp } from './chatapp.ts'
import { chatappSection } from './config.ts'

export default defineFeature({
  id: 'channel-chatapp',
  section: chatappSection,
  build(host, config) {
    const account = config.phone_number_id?.trim()
    if (!config.enabled) return { off: '`enabled` is false' }
    if (!account) return { off: 'without `phone_number_id` there is no cloud mode' }
    return { channels: [chatapp(host, config, account)] }
  },
})
