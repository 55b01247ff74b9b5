/** The `email` channel: one mailbox, read by IMAP and answered by SMTP. See `README.md`. */
import { normaliseAddress } from '@sluice/mail-common'
import { type Channel, defineFeature, type Host } from '@sluice/sdk'
import { type EmailConfig, emailSection } from './config.ts'
import { coversSender } from './identity.ts'
import { MARKUP } from './markup.ts'

/** A mail of this length stays below the limits of servers even if each character needs several bytes. */
const TEXT_MAX = 500_000
const ATTACHMENTS_MAX = 10

export default defineFeature({
  id: 'channel-email',
  section: emailSection,
  build(host, config) {
    if (!config.enabled) return { disabledReason: '`enabled` is false' }
    const mail = lazyMail(host, config)
    return { channels: [createEmail(config, mail)], check: async (signal) => (await mail()).check(signal) }
  },
})

type Mail = Awaited<ReturnType<ReturnType<typeof lazyMail>>>

/** A daemon without this channel does not load the code of connections. */
function lazyMail(host: Host, config: EmailConfig) {
  let loading: ReturnType<typeof open> | undefined
  const open = async () => (await import('./mail.ts')).openMail(host, config)
  return () => {
    loading ??= open()
    return loading
  }
}

function createEmail(config: EmailConfig, mail: () => Promise<Mail>): Channel {
  return {
    name: 'email',
    ...(!config.password && !config.refresh_token && { missingConfig: 'password, or refresh_token with client_id' }),
    allow: config.allowed_senders,
    normalise: normaliseAddress,
    matches: coversSender,
    listen: async (deliver, context) => (await mail()).connection.listen(deliver, context),
    send: async (to, message, signal) => (await mail()).send(to, message, signal),
    fetchMedia: async (attachment, { bytesMax, signal }) => (await mail()).media.fetch(attachment, bytesMax, signal),
    markup: MARKUP,
    limits: { text: TEXT_MAX, unit: 'utf16', attachments: { count: ATTACHMENTS_MAX, bytesMax: config.max_attachment_bytes } },
  }
}
