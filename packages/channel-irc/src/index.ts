/** The `irc` channel: one connection to an IRC server. See `README.md`. */
import { Cursors } from '@sluice/kit'
import { members } from '@sluice/kit/foreign-json'
import { type Channel, defineFeature, type Host } from '@sluice/sdk'
import { type IrcConfig, ircSection } from './config.ts'
import type { Connection } from './connection.ts'
import { MARKUP } from './markup.ts'
import { folded } from './wire.ts'

/** A reply is sent as a few lines, so that a break of the connection leaves little uncertain. */
const TEXT_BYTES_MAX = 1000
/** A position for each nick and server that was configured. */
const POSITIONS_MAX = 8
const ACCOUNT = 'account:'

export default defineFeature({
  id: 'channel-irc',
  section: ircSection,
  build: (host, config) => (config.enabled ? { channels: [createIrc(host, config)] } : { disabledReason: '`enabled` is false' }),
})

function createIrc(host: Host, config: IrcConfig): Channel {
  const cursors = new Cursors({
    keyValue: host.keyValue,
    key: 'positions',
    groups: [{ max: POSITIONS_MAX, has: () => true }],
    read(_scope, stored) {
      const { after } = members(stored)
      return typeof after === 'string' && /^\d{1,15}$/.test(after) ? { after } : undefined
    },
  })
  /** A daemon without this channel does not load the code of connections. */
  let loading: Promise<Connection> | undefined
  const connection = () => {
    loading ??= import('./connection.ts').then(({ Connection }) => new Connection(host, config, cursors))
    return loading
  }
  return {
    name: 'irc',
    allow: config.allowed_users,
    normalise: folded,
    // The name of an account also covers the person who has logged in to it, whatever their nick is.
    matches: (entry, sender) => sender === `${ACCOUNT}${folded(entry)}`,
    listen: async (deliver, context) => (await connection()).listen(deliver, context),
    cursors,
    send: async (to, message, signal) => (await connection()).send(to, message, signal),
    typing: async (to) => (await connection()).typing(to),
    markup: MARKUP,
    limits: { text: TEXT_BYTES_MAX, unit: 'byte' },
  }
}
