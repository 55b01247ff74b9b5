/** The messages that people and the bot can send on the platform. */
import type { Abilities } from '@sluice/sdk'

export const ABILITIES: Abilities = {
  platform: 'Signal, through signal-cli',
  arrives: ['files', 'quotes', 'edits', 'deletions', 'contact', 'link', 'payment', 'sticker', 'poll', 'call', 'unknown'],
  names: 'payload',
  sends: ['files', 'typing'],
  keeps: 'messages until they are fetched, with `--receive-mode=on-connection`',
}
