/** The messages that people and the bot can send on the platform. */
import type { Abilities } from '@sluice/sdk'

export const ABILITIES: Abilities = {
  platform: 'mail by IMAP and SMTP',
  arrives: ['files', 'quotes'],
  names: 'payload',
  sends: ['files'],
  keeps: 'the mailbox',
}
