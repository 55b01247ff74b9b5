/** The section `[channels_config.irc]`. */
import { isLoopback } from '@sluice/kit'
import { Secret, whole } from '@sluice/sdk'
import * as v from 'valibot'

const PORT_MAX = 65_535
const SERVER_NAME = /^[A-Za-z0-9._:-]+$/
/** See RFC 2812, section 2.3.1. */
const NICK = /^[A-Za-z[\]\\`_^{|}][A-Za-z0-9[\]\\`_^{|}-]{0,63}$/
const CHANNEL = /^[#&+!][^\s,:\p{Cc}]{1,199}$/u
const WORD = /^[^\s@!:\p{Cc}]{1,64}$/u

/** A line break or NUL in a password would end its line and begin a command. */
const password = (description: string) =>
  v.optional(
    v.pipe(
      v.string(),
      v.regex(/^\P{Cc}+$/u, 'must be one line of text'),
      v.transform((value) => new Secret(value)),
      v.metadata({ secret: true }),
      v.description(description),
    ),
  )

const schema = v.pipe(
  v.object({
    enabled: v.optional(v.pipe(v.boolean(), v.description('False: the channel is not built')), true),
    server: v.pipe(v.string(), v.regex(SERVER_NAME, 'must be a host name or an IP address'), v.description('Host name of the IRC server')),
    port: v.optional(v.pipe(whole(1, PORT_MAX), v.description('Port of the server')), 6697),
    tls: v.optional(
      v.pipe(v.boolean(), v.description('False: the connection is not encrypted; passwords are then accepted only for this machine')),
      true,
    ),
    verify_tls: v.optional(
      v.pipe(v.boolean(), v.description('False: any certificate is accepted, so that passwords may reach an impostor')),
      true,
    ),
    nickname: v.pipe(v.string(), v.regex(NICK, 'is not a valid nick'), v.description('Nick of the bot')),
    username: v.optional(v.pipe(v.string(), v.regex(WORD, 'is not a valid user name'), v.description('User name; the nick unless given'))),
    channels: v.optional(
      v.pipe(v.array(v.pipe(v.string(), v.regex(CHANNEL, 'is not a name of a channel, such as #ops'))), v.description('Channels to join')),
      [],
    ),
    allowed_users: v.optional(
      v.pipe(
        v.array(v.pipe(v.string(), v.minLength(1))),
        v.description('Who may write: account:<name> for a person who is logged in, or a nick; * allows every sender, an empty list none'),
      ),
      [],
    ),
    mention_only: v.optional(v.pipe(v.boolean(), v.description('True: in channels, only messages that name the bot are answered')), false),
    server_password: password('Password of the server (PASS)'),
    nickserv_password: password('Password for NickServ, for servers without SASL'),
    sasl_password: password('Password of the account of the nick; the bot logs in by SASL PLAIN before it joins'),
    send_interval_ms: v.optional(
      v.pipe(whole(0), v.description('Time between two lines after a burst of four; 0 for a server that exempts the bot from its limits')),
      2000,
    ),
  }),
  v.check(
    ({ tls, server, server_password, nickserv_password, sasl_password }) =>
      tls || isThisMachine(server) || !(server_password ?? nickserv_password ?? sasl_password),
    'tls = false would send a password unencrypted',
  ),
)

const isThisMachine = (server: string): boolean => server === 'localhost' || isLoopback(server)

export const ircSection = { path: 'channels_config.irc', schema } as const

export type IrcConfig = v.InferOutput<typeof schema>
