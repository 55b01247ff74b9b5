/** mailpush: pushes of a mail provider in, mails of its API in and out (§2.3, §4.2). Off unless it is enabled. */
import { defineFeature } from '@sluice/sdk'
import { mailpushSection } from './config.ts'
import { createMailpush } from './mailpush.ts'

export default defineFeature({
  id: 'channel-mailpush',
  section: mailpushSection,
  build: (host, config) => (config.enabled ? { channels: [createMailpush(host, config)] } : { off: '`enabled` is false' }),
})
