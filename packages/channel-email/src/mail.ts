/** The parts of the channel that need connections; loaded on first use. */
import type { Address, Host, Outbound } from '@sluice/sdk'
import { checkMailbox } from './check.ts'
import type { EmailConfig } from './config.ts'
import { Connection } from './connection.ts'
import { Credentials } from './credentials.ts'
import { MediaReader } from './media.ts'
import { sendMail } from './send.ts'
import { settingsOf } from './settings.ts'

export function openMail(host: Host, config: EmailConfig) {
  const settings = settingsOf(config)
  const credentials = new Credentials(host, settings)
  const parts = { host, settings, credentials }
  return {
    connection: new Connection(host, settings, credentials),
    media: new MediaReader(host, settings, credentials),
    send: (to: Address, message: Outbound, signal: AbortSignal) => sendMail(parts, { to, message, signal }),
    check: (signal: AbortSignal) => checkMailbox(parts, signal),
  }
}
