/** bizchat: WhatsApp through the WATI API; webhooks in, REST API out. See `docs/channels/bizchat.md`. */
import { allowlistForm } from '@sluice/kit/phone-numbers'
import { type Channel, defineFeature, type Host } from '@sluice/sdk'
import { type BizchatConfig, bizchatSection } from './config.ts'
import { fetchMedia } from './media.ts'
import { parseMessages } from './parse.ts'
import { type Api, sendMessage } from './send.ts'
import { answerHandshake, handshakeQuery, sampleRequest, verifyToken } from './webhook.ts'

const TEXT_CHARS_MAX = 4096
/** The account of events that do not name the receiving number. */
const DEFAULT_ACCOUNT = 'default'

export default defineFeature({
  id: 'channel-bizchat',
  section: bizchatSection,
  build: (host, config) => (config.enabled ? { channels: [bizchat(host, config)] } : { disabledReason: '`enabled` is false' }),
})

function bizchat(host: Host, config: BizchatConfig): Channel {
  const api: Api = { fetch: host.fetch, url: config.api_url, token: config.api_token, tenant: config.tenant_id }
  const secret = () => config.webhook_secret?.reveal().trim() ?? ''
  const isVerified = secret() !== ''
  return {
    name: 'bizchat',
    allow: config.allowed_numbers,
    normalise: allowlistForm,
    limits: { text: TEXT_CHARS_MAX, unit: 'utf16' },
    webhook: {
      path: '/bizchat',
      ...(isVerified ? {} : { unsigned: 'webhook_secret' }),
      handshake: answerHandshake,
      handshakeQuery,
      verify: (raw) => (isVerified ? verifyToken(raw, secret()) : { by: 'nothing: webhook_secret is not set' }),
      parse: (raw) => parseMessages(raw, config.tenant_id ?? DEFAULT_ACCOUNT),
      sample: (sample) => sampleRequest(sample, secret()),
    },
    send: (to, message, signal) => sendMessage(api, to, message, signal),
    fetchMedia: (attachment, { bytesMax, signal }) => fetchMedia(host, api, attachment, bytesMax, signal),
  }
}
