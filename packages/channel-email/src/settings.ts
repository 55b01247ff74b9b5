/** The settings of the channel, made from its section: the two servers, the account and the limits. A provider fills in defaults. */
import type { Secret } from '@sluice/sdk'
import type { EmailConfig } from './config.ts'
import type { MailPolicy } from './parse.ts'

/** `tls`: encrypted from the first byte. `starttls`: encrypted before anything else is said. `none`: only on this machine. */
export type Security = 'tls' | 'starttls' | 'none'

export interface MailServer {
  readonly host: string
  readonly port: number
  readonly security: Security
  readonly verifyTls: boolean
}

export interface OAuthClient {
  readonly tokenUrl: string
  readonly clientId: string
  readonly clientSecret: Secret | undefined
  readonly refreshToken: Secret
  readonly scope: string | undefined
}

export interface Settings {
  readonly imap: MailServer
  readonly smtp: MailServer
  readonly folder: string
  readonly username: string
  readonly password: Secret | undefined
  readonly oauth: OAuthClient | undefined
  /** The login of the SMTP server: the one of the mailbox, another one, or none. */
  readonly smtpLogin: 'mailbox' | 'none' | { readonly username: string; readonly secret: Secret }
  /** The address of the bot, in lower case. */
  readonly address: string
  readonly name: string | undefined
  readonly policy: MailPolicy
  readonly defaultSubject: string
  readonly attachmentBytesMax: number
  readonly idleMs: number
  /** 0: no limit. */
  readonly mailsPerHour: number
}

interface Provider {
  readonly imap: string
  readonly smtp: string
  readonly smtpPort: number
  readonly tokenUrl: string
  readonly scope?: string
  readonly authservId: string
}

const PROVIDERS: Readonly<Record<'google' | 'microsoft', Provider>> = {
  google: {
    imap: 'imap.gmail.com',
    smtp: 'smtp.gmail.com',
    smtpPort: 465,
    tokenUrl: 'https://oauth2.googleapis.com/token',
    authservId: 'mx.google.com',
  },
  microsoft: {
    imap: 'outlook.office365.com',
    smtp: 'smtp.office365.com',
    smtpPort: 587,
    tokenUrl: 'https://login.microsoftonline.com/common/oauth2/v2.0/token',
    scope: 'https://outlook.office.com/IMAP.AccessAsUser.All https://outlook.office.com/SMTP.Send offline_access',
    // Exchange Online writes the header without a name.
    authservId: '',
  },
}
const IMAP_STARTTLS_PORT = 143
const SMTPS_PORT = 465
const DEFAULT_IDLE_SECS = 60

export function settingsOf(config: EmailConfig): Settings {
  const provider = config.provider && PROVIDERS[config.provider]
  const { imap_port, verify_tls: verifyTls } = config
  const smtpPort = config.smtp_port ?? provider?.smtpPort ?? SMTPS_PORT
  const smtpSecurity = config.smtp_tls ? config.smtp_security : 'none'
  const authservId = config.authserv_id ?? provider?.authservId
  const address = (config.from_address ?? config.username).trim().toLowerCase()
  return {
    imap: {
      host: config.imap_host ?? provider?.imap ?? '',
      port: imap_port,
      security: config.imap_security ?? (imap_port === IMAP_STARTTLS_PORT ? 'starttls' : 'tls'),
      verifyTls,
    },
    smtp: {
      host: config.smtp_host ?? provider?.smtp ?? '',
      port: smtpPort,
      security: smtpSecurity ?? (smtpPort === SMTPS_PORT ? 'tls' : 'starttls'),
      verifyTls,
    },
    folder: config.imap_folder,
    username: config.username,
    password: config.password,
    oauth: oauthOf(config, provider),
    smtpLogin: smtpLoginOf(config),
    address,
    name: config.from_name,
    policy: {
      address,
      allow: config.allowed_senders,
      authservIds: authservId === undefined ? [] : [authservId.toLowerCase()],
    },
    defaultSubject: config.default_subject,
    attachmentBytesMax: config.max_attachment_bytes,
    idleMs: (config.idle_timeout_secs ?? config.poll_interval_secs ?? DEFAULT_IDLE_SECS) * 1000,
    mailsPerHour: config.max_mails_per_hour,
  }
}

function smtpLoginOf({ smtp_auth, smtp_username: username, smtp_password: secret }: EmailConfig): Settings['smtpLogin'] {
  if (!smtp_auth) return 'none'
  return username !== undefined && secret !== undefined ? { username, secret } : 'mailbox'
}

function oauthOf(config: EmailConfig, provider: Provider | undefined): OAuthClient | undefined {
  const { client_id: clientId, client_secret: clientSecret, refresh_token: refreshToken } = config
  const tokenUrl = config.token_url ?? provider?.tokenUrl
  if (!clientId || !refreshToken || !tokenUrl) return undefined
  return { tokenUrl, clientId, clientSecret, refreshToken, scope: config.oauth_scope ?? provider?.scope }
}
