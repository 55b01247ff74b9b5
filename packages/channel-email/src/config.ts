/** The section `[channels_config.email]`. */
import { isLoopback } from '@sluice/kit'
import { isAddress, isDomain } from '@sluice/mail-common'
import { httpUrl, Secret, secretText, whole } from '@sluice/sdk'
import * as v from 'valibot'

const PORT_MAX = 65_535
/** RFC 2177: IDLE must be issued again at least every 29 minutes. */
const IDLE_SECS_MAX = 1740
const ATTACHMENT_BYTES_MAX = 104_857_600

const line = (description: string) => v.pipe(v.string(), v.regex(/^\P{Cc}+$/u, 'must be one line of text'), v.description(description))
const host = (description: string) =>
  v.pipe(v.string(), v.regex(/^[A-Za-z0-9._:-]+$/, 'must be a host name or an IP address'), v.description(description))
const port = (description: string) => v.pipe(whole(1, PORT_MAX), v.description(description))
const security = (description: string) => v.pipe(v.picklist(['tls', 'starttls', 'none']), v.description(description))

/** A line break in a password could begin a command of its own, and no server accepts a NUL. */
const password = (description: string) =>
  v.pipe(
    v.string(),
    v.regex(/^\P{Cc}+$/u, 'must be one line of text'),
    v.transform((value) => new Secret(value)),
    v.metadata({ secret: true }),
    v.description(description),
  )

const allowedSender = v.pipe(
  v.string(),
  v.check(
    (entry) => entry === '*' || isAddress(entry.trim()) || isDomain(entry.trim()),
    ({ input }) =>
      `${JSON.stringify(input)} can never match a sender; write an address such as ada@example.com, a domain such as example.com, or *`,
  ),
)

const keys = v.object({
  enabled: v.optional(v.pipe(v.boolean(), v.description('False keeps the section and disables the channel')), true),
  provider: v.optional(
    v.pipe(v.picklist(['google', 'microsoft']), v.description('Fills in the servers, token_url and authserv_id of Gmail or Microsoft 365')),
  ),
  imap_host: v.optional(host('Host name of the IMAP server')),
  imap_port: v.optional(port('Port of the IMAP server'), 993),
  imap_security: v.optional(
    security('tls, starttls, or none (only for a server on this machine); unless given, starttls for port 143, else tls'),
  ),
  imap_folder: v.optional(line('The folder to read'), 'INBOX'),
  smtp_host: v.optional(host('Host name of the SMTP server')),
  smtp_port: v.optional(port('Port of the SMTP server; 465 unless given')),
  smtp_security: v.optional(
    security('tls, starttls, or none (only for a server on this machine); unless given, tls for port 465, else starttls'),
  ),
  smtp_tls: v.optional(v.pipe(v.boolean(), v.description('False is the same as smtp_security = "none"')), true),
  smtp_auth: v.optional(
    v.pipe(v.boolean(), v.description('False: mails are sent without a login, such as by a relay that knows this machine by its address')),
    true,
  ),
  smtp_username: v.optional(line('User name for the SMTP server, if it is not the one of the mailbox')),
  smtp_password: v.optional(password('Password of smtp_username')),
  verify_tls: v.optional(
    v.pipe(v.boolean(), v.description('False: any certificate is accepted, so that passwords may reach an impostor')),
    true,
  ),
  username: line('User name of the mailbox'),
  password: v.optional(password('Password of the mailbox, or an app password')),
  client_id: v.optional(line('The id of the OAuth client that refresh_token was issued to')),
  client_secret: v.optional(v.pipe(secretText(), v.description('The secret of the same OAuth client, if it has one'))),
  refresh_token: v.optional(v.pipe(secretText(), v.description('The token that gets access tokens for XOAUTH2'))),
  token_url: v.optional(v.pipe(httpUrl(), v.description('URL that returns access tokens'))),
  oauth_scope: v.optional(line('The scopes to ask for, separated by spaces')),
  from_address: v.optional(
    v.pipe(v.string(), v.check(isAddress, 'must be a mail address'), v.description('Address of the bot; username unless given')),
  ),
  from_name: v.optional(line('Name that is shown before the address')),
  allowed_senders: v.optional(
    v.pipe(
      v.array(allowedSender),
      v.description(
        'Addresses (ada@example.com) or domains (example.com) whose mails passed DMARC; * allows every sender, an empty list none',
      ),
    ),
    [],
  ),
  authserv_id: v.optional(
    line('The name at the beginning of the Authentication-Results headers of your mail server, such as mx.example.com'),
  ),
  default_subject: v.optional(line('The subject of a mail that answers none'), 'Sluice message'),
  max_attachment_bytes: v.optional(
    v.pipe(whole(1, ATTACHMENT_BYTES_MAX), v.description('The largest attachment in either direction')),
    26_214_400,
  ),
  idle_timeout_secs: v.optional(
    v.pipe(
      whole(1, IDLE_SECS_MAX),
      v.description('The time after which IDLE is issued again, which shows whether the connection still works; 60 unless given'),
    ),
  ),
  poll_interval_secs: v.optional(v.pipe(whole(1, IDLE_SECS_MAX), v.description('Another name of idle_timeout_secs'))),
  max_mails_per_hour: v.optional(
    v.pipe(
      whole(0),
      v.description('The most mails of one sender that are read in an hour, so that two programs do not answer each other; 0: no limit'),
    ),
    60,
  ),
})

const isThisMachine = (server: string | undefined): boolean => server === 'localhost' || (server !== undefined && isLoopback(server))

const schema = v.pipe(
  keys,
  v.check(
    ({ provider, imap_host, smtp_host }) => provider !== undefined || (imap_host !== undefined && smtp_host !== undefined),
    'imap_host and smtp_host are missing; set them, or provider',
  ),
  v.check(
    ({ imap_host, imap_security }) => imap_security !== 'none' || isThisMachine(imap_host),
    'imap_security = "none" would send the password unencrypted; it is accepted only for a server on this machine',
  ),
  v.check(
    ({ smtp_host, smtp_security, smtp_tls }) => (smtp_security !== 'none' && smtp_tls) || isThisMachine(smtp_host),
    'smtp_security = "none" would send the password unencrypted; it is accepted only for a server on this machine',
  ),
  v.check(
    ({ smtp_username, smtp_password }) => (smtp_username === undefined) === (smtp_password === undefined),
    'smtp_username and smtp_password belong together: set both or none of them',
  ),
  v.check(
    ({ smtp_auth, smtp_username }) => smtp_auth || smtp_username === undefined,
    'smtp_auth = false sends without a login, so that smtp_username has no effect; remove one of them',
  ),
  v.check(
    ({ from_address, username }) => from_address !== undefined || isAddress(username.trim()),
    'from_address is missing; it is required if username is another name than a mail address',
  ),
  v.check(
    ({ idle_timeout_secs, poll_interval_secs }) => idle_timeout_secs === undefined || poll_interval_secs === undefined,
    'idle_timeout_secs and poll_interval_secs are two names of one key; set one of them',
  ),
  v.check(
    ({ client_id, refresh_token }) => (client_id === undefined) === (refresh_token === undefined),
    'client_id and refresh_token belong together: set both or none of them',
  ),
  v.check(
    ({ refresh_token, token_url, provider }) => refresh_token === undefined || token_url !== undefined || provider !== undefined,
    'refresh_token needs token_url, or provider',
  ),
  v.check(
    ({ allowed_senders, authserv_id, provider }) =>
      allowed_senders.every((entry) => entry === '*') || authserv_id !== undefined || provider !== undefined,
    'allowed_senders needs authserv_id, the name that your mail server writes at the beginning of its Authentication-Results headers: without it, nothing shows whether a sender is forged',
  ),
)

export const emailSection = { path: 'channels_config.email', schema } as const

export type EmailConfig = v.InferOutput<typeof schema>
