/** mailpush: Gmail with push notifications; pushes in, mails of the API in and out. See `README.md`. */
import { untilAborted } from '@sluice/kit'
import { coversAddress, normaliseAddress } from '@sluice/mail-common'
import { type Channel, defineFeature, type Host } from '@sluice/sdk'
import { ApiClient } from './api-client.ts'
import { type MailpushConfig, mailpushSection } from './config.ts'
import type { Connection } from './connection.ts'
import { MailApi } from './mail-api.ts'
import { MARKUP } from './markup.ts'
import { fetchMedia } from './media.ts'
import { pushOptions } from './push-options.ts'
import { composeReply } from './send.ts'
import { createVerification, parse, samplePush } from './webhook.ts'

const BODY_BYTES_MAX = 1_048_576
/** A mail of this length stays below the limit of the API even if each character needs several bytes in UTF-8. */
const TEXT_MAX = 500_000
/** The API takes mails of 35 MB, in which base64 makes files a third larger. */
const ATTACHMENTS = { count: 5, bytesMax: 5_000_000 }

export default defineFeature({
  id: 'channel-mailpush',
  section: mailpushSection,
  build: (host, config) => (config.enabled ? { channels: [mailpush(host, config)] } : { disabledReason: '`enabled` is false' }),
})

function mailpush(host: Host, config: MailpushConfig): Channel {
  const api = new MailApi(new ApiClient(host, config))
  /** A daemon without this channel does not load the code of connections. */
  let loading: Promise<Connection> | undefined
  const connection = () => {
    loading ??= import('./connection.ts').then(({ Connection }) => new Connection(host, config, api))
    return loading
  }
  const pushes = pushOptions(host, config)

  return {
    name: 'mailpush',
    ...(!config.oauth_token && !config.refresh_token && { missingConfig: 'oauth_token or refresh_token' }),
    allow: config.allowed_senders,
    normalise: normaliseAddress,
    matches: coversAddress,
    webhook: {
      path: '/webhook/mailpush',
      bodyBytesMax: BODY_BYTES_MAX,
      ...createVerification(pushes),
      ...(config.webhook_url && { registered: config.webhook_url }),
      /** Returns no message: a push only says that the mailbox changed, and `listen` fetches the mails. */
      async parse(raw) {
        const { id, notice } = parse(raw)
        if (notice) await (await connection()).notify(notice, raw.receivedAtMs)
        else host.log.warn('push dropped: its data is missing or not from the mail API', { push: id })
        return []
      },
      sample: (sample) => samplePush(sample, pushes),
    },
    listen: async (deliver, context) => (await connection()).listen(deliver, context),
    async send(to, message, signal) {
      const mail = await untilAborted(composeReply(to, message, host.clock.nowMs()), signal, 'The mail was aborted before it was sent')
      return { id: await api.send(mail, to.thread, signal) }
    },
    markup: MARKUP,
    limits: { text: TEXT_MAX, unit: 'utf16', attachments: ATTACHMENTS },
    fetchMedia: (attachment, { bytesMax, signal }) => fetchMedia(api, attachment, bytesMax, signal),
  }
}
