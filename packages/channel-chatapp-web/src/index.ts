/** chatapp in web mode: WhatsApp as a linked device of a phone. See `README.md`. */
import { allowlistForm } from '@sluice/kit/phone-numbers'
import { type Channel, type ChannelLink, defineFeature, type Finding, type Host } from '@sluice/sdk'
import { type ChatappWebConfig, chatappWebSection, secondSection } from './config.ts'
import type { Connection } from './connection.ts'
import { LICENCE_NOTE, missingLibrary } from './library.ts'
import type { Linker } from './linker.ts'
import { MARKUP } from './markup.ts'

/** A length that every client shows. */
const TEXT_MAX = 4096
const FILES = { count: 10, bytesMax: 16 * 1_048_576 }

export default defineFeature({
  id: 'channel-chatapp-web',
  section: chatappWebSection,
  moreSections: [secondSection],
  build(host, config, path = chatappWebSection.path) {
    if (!config.enabled) return { disabledReason: '`enabled` is false' }
    if (config.session_path === undefined) return { disabledReason: '`session_path`, which activates web mode, is not set' }
    if (config.phone_number_id?.trim())
      return { disabledReason: '`phone_number_id` activates cloud mode, which takes precedence over `session_path`' }
    const { channel, link } = createChatappWeb(host, config, path)
    return { channels: [channel], missingRequirement: missingLibrary, check: () => check(channel.name, link) }
  },
})

function createChatappWeb(host: Host, config: ChatappWebConfig, path: string): { readonly channel: Channel; readonly link: ChannelLink } {
  const name = path.slice(path.lastIndexOf('.') + 1)
  /** A daemon without this channel loads neither its code nor the library. */
  let loading: Promise<{ readonly connection: Connection; readonly linker: Linker }> | undefined
  const loaded = () => {
    loading ??= load(host, config, path)
    return loading
  }
  const connection = async (): Promise<Connection> => (await loaded()).connection
  const link: ChannelLink = {
    status: async () => (await loaded()).linker.status(),
    start: async (options) => (await loaded()).linker.start(options),
    unlink: async (signal) => (await loaded()).linker.unlink(signal),
  }
  const channel: Channel = {
    name,
    allow: config.allowed_numbers,
    normalise: allowlistForm,
    link,
    listen: async (deliver, context) => (await connection()).listen(deliver, context),
    markup: MARKUP,
    limits: { text: TEXT_MAX, unit: 'utf16', dedupesClientIds: true, attachments: FILES },
    send: async (to, message, signal) => (await connection()).send(to, message, signal),
    update: async (to, sent, message, signal) => (await connection()).update(to, sent, message, signal),
    ...(config.stream_mode === 'partial' && { draftEveryMs: config.draft_update_interval_ms }),
    typing: async (to) => (await connection()).typing(to),
    ...((config.read_receipts ?? config.mode === 'business') && {
      acknowledge: async (message) => (await connection()).acknowledge(message),
    }),
    fetchMedia: async (attachment, options) => (await connection()).fetchMedia(attachment, options),
  }
  return { channel, link }
}

async function load(host: Host, config: ChatappWebConfig, path: string) {
  const [{ Connection, prefixOf }, { Linker }] = await Promise.all([import('./connection.ts'), import('./linker.ts')])
  const prefix = prefixOf(path, config)
  const connection = new Connection(host, config, prefix)
  return { connection, linker: new Linker(host, config, prefix, connection) }
}

/** The rows of `sluice doctor`. Reads the store only. */
async function check(name: string, link: ChannelLink): Promise<Finding[]> {
  const missing = missingLibrary()
  if (missing !== undefined)
    return [{ status: 'fail', detail: `${name}: ${missing}`, fix: 'sluice native install @whiskeysockets/baileys' }]
  const licence: Finding = { status: 'ok', detail: `${name}: ${LICENCE_NOTE}; they are installed here` }
  const status = await link.status()
  if (status.state === 'linked') return [licence, { status: 'ok', detail: `${name}: linked to ${status.account}` }]
  const detail = `${name}: no phone has linked this device${status.state === 'unlinked' && status.reason !== undefined ? ` (${status.reason})` : ''}`
  return [licence, { status: 'fail', detail, fix: `sluice channels link ${name}` }]
}
