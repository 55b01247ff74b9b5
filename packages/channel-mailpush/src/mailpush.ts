/** The channel: pushes wake the listener, the listener brings the mails, replies go out as mails of the same thread. */
import type { Channel, Host } from '@sluice/sdk'
import { createAccessToken } from './access-token.ts'
import { coversAddress, normaliseAddress } from './address.ts'
import { createApiRequest } from './api-request.ts'
import { composeMail } from './compose-mail.ts'
import type { MailpushConfig } from './config.ts'
import { fetchMedia } from './fetch-media.ts'
import { createMailApi } from './mail-api.ts'
import { createMailboxListener } from './mailbox-listener.ts'
import { parsePush } from './parse-push.ts'
import { samplePush } from './sample-push.ts'
import { createProof } from './verify-push.ts'

const BODY_BYTES_MAX = 1_048_576
/** A mail of that many characters stays below what the API takes, however long each of them is in UTF-8. */
const TEXT_MAX = 500_000

export function createMailpush(host: Host, config: MailpushConfig): Channel {
  const api = createMailApi(createApiRequest(host, config, createAccessToken(host, config)))
  const mailbox = createMailboxListener(host, config, api)
  let lastSentAtMs: number | undefined

  return {
    name: 'mailpush',
    ...(!config.oauth_token && !config.refresh_token && { lacks: 'oauth_token or refresh_token' }),
    allow: config.allowed_senders,
    normalise: normaliseAddress,
    matches: coversAddress,
    webhook: {
      path: '/webhook/mailpush',
      bodyBytesMax: BODY_BYTES_MAX,
      ...createProof(host, config),
      ...(config.webhook_url && { registered: config.webhook_url }),
      /** Always empty: a push says that something happened, and `listen` looks what it was. */
      async parse({ body, receivedAtMs }) {
        const { id, notice } = parsePush(body)
        if (notice) await mailbox.pushed(notice, receivedAtMs)
        else host.log.warn('a push was dropped: it has no data, or none that the mail provider publishes', { push: id })
        return []
      },
      sample: (sample) => samplePush(sample, config),
    },
    listen: mailbox.listen,
    async send(to, message, signal) {
      const id = await api.send(composeMail(to, message, host.clock.nowMs()), to.thread, signal)
      lastSentAtMs = host.clock.nowMs()
      return { id }
    },
    limits: { text: TEXT_MAX, unit: 'utf16' },
    fetchMedia: (attachment, options) => fetchMedia(api, attachment, options),
    health: () => ({ ...mailbox.health(), ...(lastSentAtMs !== undefined && { lastSentAtMs }) }),
  }
}
