/** The channel: what comes in by its webhook, what goes out by the cloud API, and what is known of both. */
import { AppError, type Channel, type Host, type Webhook } from '@sluice/sdk'
import type { ChatappConfig } from './config.ts'
import { fetchMedia } from './fetch-media.ts'
import { createGraph } from './graph.ts'
import { handshake } from './handshake.ts'
import { parseMessages } from './parse-messages.ts'
import { sampleRequest } from './sample-request.ts'
import { sendText } from './send-text.ts'
import { allowedForm } from './sender.ts'
import { isConfigured, verify } from './verify.ts'

/** The provider batches what it could not deliver, up to 3 MB. */
const BODY_BYTES_MAX = 3 * 1_048_576
const TEXT_MAX = 4096

/** `account` is the id of our number at the provider. */
export function chatapp(host: Host, config: ChatappConfig, account: string): Channel {
  const graph = createGraph(host, config)
  let lastSentAtMs: number | undefined
  let trouble: string | undefined

  return {
    name: 'chatapp',
    allow: config.allowed_numbers,
    normalise: allowedForm,
    webhook: webhook(config, account),
    // Whether the provider counts characters or UTF-16 units it does not say; of the two, these are never fewer.
    limits: { text: TEXT_MAX, unit: 'utf16' },
    async send(to, message, signal) {
      try {
        const sent = await sendText(graph, account, { to, text: message.text, signal })
        lastSentAtMs = host.clock.nowMs()
        trouble = undefined
        return sent
      } catch (error) {
        if (error instanceof AppError && error.code === 'unavailable') trouble = error.message
        throw error
      }
    },
    fetchMedia: (attachment, options) => fetchMedia(graph, attachment, options),
    health: () => ({
      state: trouble === undefined ? 'ok' : 'down',
      ...(trouble !== undefined && { detail: trouble }),
      ...(lastSentAtMs !== undefined && { lastSentAtMs }),
    }),
  }
}

const webhook = (config: ChatappConfig, account: string): Webhook => ({
  path: '/chatapp',
  bodyBytesMax: BODY_BYTES_MAX,
  ...(!isConfigured(config.app_secret) && { unsigned: 'app_secret' }),
  handshake: (url) => handshake(url, config.verify_token),
  handshakeQuery: (challenge) => ({
    'hub.mode': 'subscribe',
    'hub.verify_token': config.verify_token.reveal().trim(),
    'hub.challenge': challenge,
  }),
  verify: (raw) => verify(raw, config.app_secret),
  parse: ({ body }) => parseMessages(body, account),
  sample: (sample) => sampleRequest(sample, { account, secret: config.app_secret }),
})
