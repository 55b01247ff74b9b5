/** bizchat: a business messaging host; webhooks in, its API out (§2.3, §4.2). */
import { type Channel, defineFeature, type Host } from '@sluice/sdk'
import { type BizchatConfig, bizchatSection } from './config.ts'
import { fetchMedia } from './fetch-media.ts'
import { answerHandshake, handshakeQuery } from './handshake.ts'
import { parseMessages } from './parse.ts'
import { sampleRequest } from './sample.ts'
import { type Api, sendMessage } from './send.ts'
import { allowedForm } from './sender.ts'
import { verifyToken } from './verify.ts'

const TEXT_CHARS_MAX = 4096
/** For events that do not say which of our numbers they came to. */
const ACCOUNT = 'default'

export default defineFeature({
  id: 'channel-bizchat',
  section: bizchatSection,
  build: (host, config) => (config.enabled ? { channels: [bizchat(host, config)] } : { off: '`enabled` is false' }),
})

function bizchat(host: Host, config: BizchatConfig): Channel {
  const api: Api = { fetch: host.fetch, url: config.api_url, token: config.api_token, tenant: config.tenant_id }
  const secret = () => config.webhook_secret?.reveal().trim() ?? ''
  const isVerified = secret() !== ''
  return {
    name: 'bizchat',
    allow: config.allowed_numbers,
    normalise: allowedForm,
    limits: { text: TEXT_CHARS_MAX, unit: 'utf16' },
    webhook: {
      path: '/bizchat',
      ...(isVerified ? {} : { unsigned: 'webhook_secret' }),
      handshake: answerHandshake,
      handshakeQuery,
      verify: (raw) => (isVerified ? verifyToken(raw, secret()) : { by: 'nothing: webhook_secret is not set' }),
      parse: (raw) => parseMessages(raw, config.tenant_id ?? ACCOUNT),
      sample: (sample) => sampleRequest(sample, secret()),
    },
    send: (to, message, signal) => sendMessage(api, to, message, signal),
    fetchMedia: (attachment, options) =>
      fetchMedia({ ...api, publicFetch: host.publicFetch, publicAddresses: host.publicAddresses }, attachment, options),
  }
}
