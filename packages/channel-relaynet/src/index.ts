/** The `relaynet` channel: direct messages of Nostr over relays. See `README.md`. */
import { type Channel, defineFeature, type Host } from '@sluice/sdk'
import { type RelaynetConfig, relaynetSection } from './config.ts'
import type { Connection } from './connection.ts'
import { MARKUP } from './markup.ts'
import { Positions } from './positions.ts'

/**
 * Relays usually refuse events of more than 65,536 bytes. A message is encrypted and encoded twice, with padding, and quotes and
 * line breaks have two bytes in JSON.
 */
const TEXT_BYTES_MAX = 12_000
const ATTACHMENTS = { count: 4, bytesMax: 20 * 1024 * 1024 }

export default defineFeature({
  id: 'channel-relaynet',
  section: relaynetSection,
  build(host, config) {
    if (!config.enabled) return { disabledReason: '`enabled` is false' }
    const { channel, close } = createRelaynet(host, config)
    return { channels: [channel], close }
  },
})

function createRelaynet(host: Host, config: RelaynetConfig): { readonly channel: Channel; close(): Promise<void> } {
  const positions = new Positions(host)
  /** A daemon without this channel does not load the code of connections and cryptography. */
  let loading: Promise<Connection> | undefined
  const connection = () => {
    loading ??= import('./connection.ts').then(({ Connection }) => new Connection(host, config, positions))
    return loading
  }
  const channel: Channel = {
    name: 'relaynet',
    allow: config.allowed_pubkeys,
    listen: async (deliver, context) => (await connection()).listen(deliver, context),
    cursors: positions,
    markup: MARKUP,
    limits: {
      text: TEXT_BYTES_MAX,
      unit: 'byte',
      dedupesClientIds: true,
      ...(config.blossom_url !== undefined && { attachments: ATTACHMENTS }),
    },
    send: async (to, message, signal) => (await connection()).send(to, message, signal),
    fetchMedia: async (attachment, { bytesMax, signal }) => (await connection()).fetchMedia(attachment, bytesMax, signal),
  }
  return {
    channel,
    async close() {
      const loaded = await loading?.catch(() => undefined)
      loaded?.close()
    },
  }
}
