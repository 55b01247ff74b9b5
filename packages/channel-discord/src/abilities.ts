/** The messages that people and the bot can send on the platform. */
import type { Abilities } from '@sluice/sdk'

export const ABILITIES: Abilities = {
  platform: 'Discord',
  arrives: ['files', 'quotes', 'forwards', 'edits', 'deletions', 'sticker', 'poll', 'event', 'unknown'],
  names: 'payload',
  sends: ['commands', 'files', 'edits', 'typing'],
  keeps: 'the history: messages of the last hour, and edits of the last day in up to 100 messages',
}
